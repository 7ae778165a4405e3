"""Checkpoints of `hf/NAME`: loading weights and tokenizer from a folder or the hub, and their identity."""

from __future__ import annotations

import hashlib
import importlib.util
import os
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

from proctor.core.config import RunConfig, user_path
from proctor.core.errors import MissingExtraError, UsageError
from proctor.core.extras import import_extra
from proctor.core.machine import available_mib

PROCESSOR_FILES = ("preprocessor_config.json", "processor_config.json")
PRECISIONS = {"fp32": "float32", "fp16": "float16", "bf16": "bfloat16"}
HUB_TIMEOUT = 10.0  # seconds; without an answer the local cache of the hub is used

# Files that can change an output. A training run leaves others, and a README may change.
HASHED_SUFFIXES = frozenset({".json", ".jinja", ".model", ".txt", ".py", ".safetensors", ".bin"})
HEAD_BYTES = 2**20  # hashed completely
STRIDE, BLOCK = 2**22, 2**12  # after the head, one block of every stride is hashed


class Checkpoint(NamedTuple):
    model: Any
    tokenizer: Any
    processor: Any  # None for a text model
    identity: dict[str, str]


class Source(NamedTuple):
    name_or_path: str  # on the hub, or of a folder
    options: dict[str, Any]  # for every from_pretrained()
    files: str  # digest of a folder; empty on the hub
    commit: str  # on the hub; empty for a folder


class ModelPlan(NamedTuple):
    """A model before its weights are downloaded."""

    source: Source
    settings: Any  # the transformers configuration
    is_vision: bool  # its architecture takes images


def find_devices(count: int) -> list[str]:
    """The first GPUs, or the CPU where there are none."""
    torch, _ = _import_libraries()
    gpus = [f"cuda:{number}" for number in range(torch.cuda.device_count())]
    if count > max(len(gpus), 1):
        raise UsageError(f"--devices {count}: this machine has {len(gpus)} GPUs.")
    return gpus[:count] or ["cpu"]


def look_up_model(name: str, config: RunConfig) -> ModelPlan:
    _, transformers = _import_libraries()
    _refuse_missing_extras(config)
    source = _find_source(name, config.revision)
    causal = config.modeltype == "causal"
    with _explaining_errors(name):
        settings = transformers.AutoConfig.from_pretrained(
            source.name_or_path, trust_remote_code=config.trust_remote_code, **source.options
        )
    if settings.is_encoder_decoder == causal:
        other = "seq2seq" if causal else "causal"
        raise UsageError(f"hf/{name} is not a {config.modeltype} model: use --modeltype {other}.")
    return ModelPlan(source, settings, causal and type(settings) in transformers.MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING)


def load_checkpoint(name: str, plan: ModelPlan, config: RunConfig, device: str) -> Checkpoint:
    torch, transformers = _import_libraries()
    source = plan.source
    options = source.options | {"trust_remote_code": config.trust_remote_code}
    with _explaining_errors(name), _without_progress_bars(transformers):
        processor = _load_processor(plan, options, transformers) if plan.is_vision else None
        if processor is None:
            tokenizer = transformers.AutoTokenizer.from_pretrained(source.name_or_path, **options)
        else:
            tokenizer = processor.tokenizer
            tokenizer.chat_template = processor.chat_template or tokenizer.chat_template
        if config.api == "chat" and not tokenizer.chat_template:
            raise UsageError(f"hf/{name} has no chat template: use --api completions.")
        placement = _placement(config, device, torch, transformers)
        model, loading_info = _auto_class(config, processor, transformers).from_pretrained(
            source.name_or_path,
            dtype=getattr(torch, PRECISIONS[config.precision]) if config.precision else "auto",
            output_loading_info=True,
            **placement,
            **options,
        )
        if missing := sorted(loading_info["missing_keys"]):
            # transformers would initialize them randomly.
            raise UsageError(f"hf/{name} lacks {len(missing)} of its weights, for example {missing[0]}.")
        if not placement:
            model = model.to(device)
    adapter = "none"
    if config.peft_model:
        model, adapter = _merge_adapter(model, config.peft_model)
    identity = {
        "model": f"hf/{name}",
        "commit": source.commit,
        "files": source.files,
        "dtype": str(model.dtype).removeprefix("torch."),
        "quantized": "8 bit" if config.load_in_8bit else "4 bit" if config.load_in_4bit else "no",
        "adapter": adapter,
        "runtime": _versions("torch", "transformers", "tokenizers"),
    }
    if processor is not None:
        identity["pictures"] = _describe_image_processor(processor.image_processor)
    return Checkpoint(model.eval(), tokenizer, processor, identity)


def _auto_class(config: RunConfig, processor: Any, transformers: Any) -> Any:
    if processor is not None:
        return transformers.AutoModelForImageTextToText
    return transformers.AutoModelForCausalLM if config.modeltype == "causal" else transformers.AutoModelForSeq2SeqLM


def _load_processor(plan: ModelPlan, options: dict[str, Any], transformers: Any) -> Any:
    """The processor of a vision model; None if it has no image processor."""
    try:
        processor = transformers.AutoProcessor.from_pretrained(plan.source.name_or_path, **options)
    except ImportError as error:
        cls = transformers.PROCESSOR_MAPPING.get(type(plan.settings), None)
        if "torchvision" not in str(error).lower() or cls is None or "video_processor" not in cls.get_attributes():
            raise
        return _load_without_video(cls, plan.source.name_or_path, options, transformers)
    except OSError:
        if any((Path(plan.source.name_or_path) / name).exists() for name in PROCESSOR_FILES):
            raise
        return None  # the checkpoint was saved without a processor and is used as a text model
    return processor if hasattr(processor, "image_processor") else None


def _load_without_video(cls: Any, name_or_path: str, options: dict[str, Any], transformers: Any) -> Any:
    """A processor without its video processor, which needs torchvision and is never used here."""

    class Processor(cls):  # type: ignore[misc]
        def check_argument_for_proper_class(self, name: str, part: Any) -> Any:
            return None if name == "video_processor" else super().check_argument_for_proper_class(name, part)

    loaders = {"image_processor": transformers.AutoImageProcessor, "tokenizer": transformers.AutoTokenizer}
    parts = [
        loaders[name].from_pretrained(name_or_path, **options) if name in loaders else None
        for name in Processor.get_attributes()
    ]
    settings, _ = cls.get_processor_dict(name_or_path, **options)
    return Processor.from_args_and_dict(parts, settings)


def _describe_image_processor(image_processor: Any) -> str:
    """Its class and the library that resizes images, because libraries differ in some pixels."""
    name = type(image_processor).__name__
    libraries = ["pillow"] if name.endswith("Pil") or not _installed("torchvision") else ["pillow", "torchvision"]
    return f"{name}, {_versions(*libraries)}"


def _versions(*packages: str) -> str:
    return ", ".join(f"{package} {version(package)}" for package in packages)


def _installed(*packages: str) -> bool:
    return all(importlib.util.find_spec(package) is not None for package in packages)


def _import_libraries() -> tuple[Any, Any]:
    # Set before the import. Waiting threads that spin make busy cores many times slower.
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")
    return import_extra("torch", "A model of hf/", "hf"), import_extra("transformers", "A model of hf/", "hf")


def _refuse_missing_extras(config: RunConfig) -> None:
    if config.load_in_8bit and config.load_in_4bit:
        raise UsageError("load_in_8bit and load_in_4bit exclude each other: set one of them.")
    if (config.load_in_8bit or config.load_in_4bit) and not _installed("bitsandbytes", "accelerate"):
        raise MissingExtraError("A quantized model", "bitsandbytes")
    if config.peft_model and not _installed("peft"):
        raise MissingExtraError("An adapter (peft_model)", "peft")
    for key in ("device_map", "max_memory_per_gpu"):
        if getattr(config, key) and not _installed("accelerate"):
            raise MissingExtraError(f"A model on several devices ({key})", "accelerate")


def _placement(config: RunConfig, device: str, torch: Any, transformers: Any) -> dict[str, Any]:
    """Options with which transformers places the weights; empty if we move them ourselves."""
    quantized = config.load_in_8bit or config.load_in_4bit
    memory = config.max_memory_per_gpu if device != "cpu" else None
    if not (quantized or config.device_map or memory):
        return {}
    placement: dict[str, Any] = {"device_map": config.device_map or ("auto" if memory else {"": device})}
    if memory not in (None, "auto"):
        placement["max_memory"] = dict.fromkeys(range(torch.cuda.device_count()), memory) | {
            "cpu": f"{available_mib()}MiB"
        }
    if quantized:
        placement["quantization_config"] = transformers.BitsAndBytesConfig(
            load_in_8bit=config.load_in_8bit, load_in_4bit=config.load_in_4bit
        )
    return placement


def _find_source(name: str, revision: str | None) -> Source:
    folder = user_path(name)
    if folder.is_dir():
        return Source(str(folder), {}, folder_digest(folder), "")
    if folder.is_absolute() or name.startswith((".", "~")) or name.count("/") > 1:
        raise UsageError(f"No folder {folder}: hf/ takes a folder with a model, or its OWNER/NAME on the hub.")
    return _find_on_hub(name, revision)


def _find_on_hub(name: str, revision: str | None) -> Source:
    """Ask the hub once, instead of once per file with retries, so that offline runs start soon."""
    import huggingface_hub
    from huggingface_hub import errors

    unreachable = ""
    try:
        huggingface_hub.HfApi().model_info(name, revision=revision, timeout=HUB_TIMEOUT)
    except errors.GatedRepoError:
        raise UsageError(
            f"The model {name} on the hub is gated: request access there, and run `hf auth login`."
        ) from None
    except (errors.RepositoryNotFoundError, errors.HFValidationError):
        raise UsageError(f"There is no model {name} on the hub, and no folder of that name here.") from None
    except errors.RevisionNotFoundError:
        raise UsageError(f"The model {name} on the hub has no revision {revision}.") from None
    except Exception as error:  # huggingface_hub lets network errors of any kind through
        unreachable = _first_line(error)
    try:
        file = huggingface_hub.hf_hub_download(
            name, "config.json", revision=revision, local_files_only=bool(unreachable)
        )
    except Exception as error:
        reason = _first_line(error)
        if unreachable:
            reason = f"the hub cannot be reached ({unreachable}), and it is not on this machine"
        raise UsageError(f"Cannot load hf/{name}: {reason}.") from None
    commit = Path(file).parent.name
    # By commit, so that all files are of one state even if the model changes meanwhile.
    return Source(name, {"revision": commit, "local_files_only": bool(unreachable)}, "", commit)


def _merge_adapter(model: Any, name: str) -> tuple[Any, str]:
    """Merge the adapter into the weights; return the model and the adapter's identity."""
    import huggingface_hub
    import peft

    with _explaining_errors(name):
        folder = user_path(name)
        if not folder.is_dir():
            folder = Path(huggingface_hub.snapshot_download(name))
        merged = peft.PeftModel.from_pretrained(model, str(folder)).merge_and_unload()
    return merged, f"{name} {folder_digest(folder)}"


@contextmanager
def _explaining_errors(name: str) -> Iterator[None]:
    """Report any exception of the loading libraries in one sentence."""
    try:
        yield
    except UsageError:
        raise
    except Exception as error:
        hint = " With --trust-remote-code it may run its own code." if "trust_remote_code" in str(error) else ""
        raise UsageError(f"Cannot load hf/{name}: {_first_line(error)}.{hint}") from error


def _first_line(error: Exception) -> str:
    lines = str(error).strip().splitlines() or [type(error).__name__]
    return lines[0].strip().rstrip(".:")


@contextmanager
def _without_progress_bars(transformers: Any) -> Iterator[None]:
    """Hide transformers' progress bars; huggingface_hub still shows those of downloads."""
    logging = transformers.utils.logging
    shown = logging.is_progress_bar_enabled()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        if shown:
            logging.enable_progress_bar()


def folder_digest(folder: Path) -> str:
    """A hash over the files of a model that can change an output.

    Hashing all weights each time would take too long, and sizes and headers are equal for two
    checkpoints of one training. So an evenly spread thousandth of a large file is hashed:
    training changes nearly every weight, so it is detected. Editing single weights is not.
    """
    digest = hashlib.sha256()
    for path in sorted(folder.iterdir()):
        if path.suffix in HASHED_SUFFIXES and path.is_file():
            size = path.stat().st_size
            digest.update(f"{path.name}\0{size}\0".encode())
            with path.open("rb") as file:
                digest.update(file.read(HEAD_BYTES))
                for offset in (*range(HEAD_BYTES, size, STRIDE), max(HEAD_BYTES, size - BLOCK)):
                    file.seek(offset)
                    digest.update(file.read(BLOCK))
    return digest.hexdigest()
