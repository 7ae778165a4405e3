"""Memory of the host and of a device: when it has run out, and what goes from the one to the other."""

from __future__ import annotations

import torch
from torch import Tensor


def is_out_of_memory(error: Exception) -> bool:
    """On a processor, and in some libraries of a GPU, it can be told by the words alone."""
    words = ("DefaultCPUAllocator", "CUBLAS_STATUS_ALLOC_FAILED", "CUDNN_STATUS_ALLOC_FAILED")
    said = str(error) if isinstance(error, RuntimeError) else ""
    return isinstance(error, torch.OutOfMemoryError | MemoryError) or any(word in said for word in words)


def release_memory() -> None:
    if torch.cuda.is_available():
        torch.cuda.empty_cache()


def to_device(tensor: Tensor, device: torch.device) -> Tensor:
    """A tensor of the host on the device, without waiting for what the device is doing."""
    if device.type != "cuda":
        return tensor
    # From memory that the device can read by itself.
    return tensor.pin_memory().to(device, non_blocking=True)
