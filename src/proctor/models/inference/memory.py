"""Memory of the host and the device: out-of-memory errors, and copies to the device."""

from __future__ import annotations

import torch
from torch import Tensor

# The CPU allocator and some GPU libraries raise a plain RuntimeError with one of these words.
_MESSAGES = ("DefaultCPUAllocator", "CUBLAS_STATUS_ALLOC_FAILED", "CUDNN_STATUS_ALLOC_FAILED")


def is_out_of_memory(error: Exception) -> bool:
    if isinstance(error, torch.OutOfMemoryError | MemoryError):
        return True
    return isinstance(error, RuntimeError) and any(word in str(error) for word in _MESSAGES)


def release_memory() -> None:
    """Return PyTorch's cached GPU memory to the device."""
    if torch.cuda.is_available():
        torch.cuda.empty_cache()


def to_device(tensor: Tensor, device: torch.device) -> Tensor:
    """Copy a host tensor to the device without waiting for the device's pending work."""
    if device.type != "cuda":
        return tensor
    # An asynchronous copy needs pinned memory.
    return tensor.pin_memory().to(device, non_blocking=True)
