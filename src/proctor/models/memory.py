"""Whether memory ran out, and how what is not needed any more is handed back."""

from __future__ import annotations

import torch


def ran_out_of_memory(error: Exception) -> bool:
    """On a processor, and in some libraries of a GPU, it can be told by the words alone."""
    words = ("DefaultCPUAllocator", "CUBLAS_STATUS_ALLOC_FAILED", "CUDNN_STATUS_ALLOC_FAILED")
    said = str(error) if isinstance(error, RuntimeError) else ""
    return isinstance(error, torch.OutOfMemoryError | MemoryError) or any(word in said for word in words)


def release() -> None:
    if torch.cuda.is_available():
        torch.cuda.empty_cache()
