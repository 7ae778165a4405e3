"""What `hf/NAME` stands for: weights and tokenizer, from a folder or the hub, and what tells them from any others."""

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
HUB_TIMEOUT = 10.0  # seconds for the hub to answer; after that, what is on this machine must do

# What decides an answer. A training run leaves more in its folder, and a README may change.
HASHED_SUFFIXES = frozenset({".json", ".jinja", ".model", ".txt", ".py", ".safetensors", ".bin"})
HEAD_BYTES = 2**20  # bytes at the start of a file that are all looked at
STRIDE, BLOCK = 2**22, 2**12  # after them, one block in every stride


class Checkpoint(NamedTuple):
    model: Any
    tokenizer: Any
    processor: Any  # of pictures; None for a model of text alone
    identity: dict[str, str]


class Source(NamedTuple):
    place: str  # a folder, or a name on the hub
    options: dict[str, Any]  # for everything that is loaded from there
    files: str  # digest of a folder
    commit: str  # of what lies on the hub


class ModelPlan(NamedTuple):
    """What is known of a model before its weights are fetched."""

    source: Source
    settings: Any  # the library's configuration
    sees: bool  # its architecture takes pictures


def find_devices(count: int) -> list[str]:
    """So many GPUs; one processor is there for everybody who has none."""
    torch, _ = _import_libraries()
    found = [f"cuda:{number}" for number in range(torch.cuda.device_count())]
    if count > max(len(found), 1):
        raise UsageError(f"--devices {count}: there are {len(found)} GPUs here.")
    return found[:count] or ["cpu"]


def look_up_model(name: str, config: RunConfig) -> ModelPlan:
    _, transformers = _import_libraries()
    _refuse_missing_extras(config)
    source = _find_source(name, config.revision)
    causal = config.modeltype == "causal"
    with _explaining_errors(name):
        settings = transformers.AutoConfig.from_pretrained(
            source.place, trust_remote_code=config.trust_remote_code, **source.options
        )
    if settings.is_encoder_decoder == causal:
        cure = "seq2seq" if causal else "causal"
        raise UsageError(f"hf/{name} is no {config.modeltype} model: use --modeltype {cure}.")
    return ModelPlan(source, settings, causal and type(settings) in transformers.MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING)


def load_checkpoint(name: str, plan: ModelPlan, config: RunConfig, device: str) -> Checkpoint:
    torch, transformers = _import_libraries()
    source = plan.source
    options = source.options | {"trust_remote_code": config.trust_remote_code}
    with _explaining_errors(name), _without_progress_bars(transformers):
        processor = _load_processor(plan, options, transformers) if plan.sees else None
        if processor is None:
            tokenizer = transformers.AutoTokenizer.from_pretrained(source.place, **options)
        else:
            tokenizer = processor.tokenizer
            tokenizer.chat_template = processor.chat_template or tokenizer.chat_template
        if config.api == "chat" and not tokenizer.chat_template:
            raise UsageError(f"hf/{name} has no chat template: use --api completions.")
        placement = _placement(config, device, torch, transformers)
        model, found = _auto_class(config, processor, transformers).from_pretrained(
            source.place,
            dtype=getattr(torch, PRECISIONS[config.precision]) if config.precision else "auto",
            output_loading_info=True,
            **placement,
            **options,
        )
        if missing := sorted(found["missing_keys"]):
            # The library fills them with random numbers, and the model would answer accordingly.
            raise UsageError(f"hf/{name} lacks {len(missing)} of its weights, {missing[0]} for example.")
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
    """What makes tokens and numbers of a prompt with pictures; None where there is nothing for pictures."""
    try:
        processor = transformers.AutoProcessor.from_pretrained(plan.source.place, **options)
    except ImportError as error:
        kind = transformers.PROCESSOR_MAPPING.get(type(plan.settings), None)
        if "torchvision" not in str(error).lower() or kind is None or "video_processor" not in kind.get_attributes():
            raise
        return _load_without_video(kind, plan.source.place, options, transformers)
    except OSError:
        if any((Path(plan.source.place) / name).exists() for name in PROCESSOR_FILES):
            raise
        return None  # a checkpoint that was saved without: its text can be asked for
    return processor if hasattr(processor, "image_processor") else None


def _load_without_video(kind: Any, place: str, options: dict[str, Any], transformers: Any) -> Any:
    """A processor less its part for films: that part needs torchvision, and nobody is shown any here."""

    class Processor(kind):  # type: ignore[misc]
        def check_argument_for_proper_class(self, name: str, part: Any) -> Any:
            return None if name == "video_processor" else super().check_argument_for_proper_class(name, part)

    loaders = {"image_processor": transformers.AutoImageProcessor, "tokenizer": transformers.AutoTokenizer}
    parts = [
        loaders[name].from_pretrained(place, **options) if name in loaders else None
        for name in Processor.get_attributes()
    ]
    settings, _ = kind.get_processor_dict(place, **options)
    return Processor.from_args_and_dict(parts, settings)


def _describe_image_processor(image_processor: Any) -> str:
    """Libraries that resize a picture do not agree on every pixel."""
    name = type(image_processor).__name__
    libraries = ["pillow"] if name.endswith("Pil") or not _installed("torchvision") else ["pillow", "torchvision"]
    return f"{name}, {_versions(*libraries)}"


def _versions(*packages: str) -> str:
    return ", ".join(f"{package} {version(package)}" for package in packages)


def _installed(*packages: str) -> bool:
    return all(importlib.util.find_spec(package) is not None for package in packages)


def _import_libraries() -> tuple[Any, Any]:
    # Read when the library is loaded: waiting threads that spin can make busy cores many times slower.
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")
    return import_extra("torch", "A model of hf/", "hf"), import_extra("transformers", "A model of hf/", "hf")


def _refuse_missing_extras(config: RunConfig) -> None:
    if config.load_in_8bit and config.load_in_4bit:
        raise UsageError("load_in_8bit and load_in_4bit: a model is loaded in the one or the other.")
    if (config.load_in_8bit or config.load_in_4bit) and not _installed("bitsandbytes", "accelerate"):
        raise MissingExtraError("A quantized model", "bitsandbytes")
    if config.peft_model and not _installed("peft"):
        raise MissingExtraError("An adapter (peft_model)", "peft")
    for key in ("device_map", "max_memory_per_gpu"):
        if getattr(config, key) and not _installed("accelerate"):
            raise MissingExtraError(f"A model on several devices ({key})", "accelerate")


def _placement(config: RunConfig, device: str, torch: Any, transformers: Any) -> dict[str, Any]:
    """How the library puts the weights where they belong; nothing where it leaves that to us."""
    quantized = config.load_in_8bit or config.load_in_4bit
    # Without a GPU there is nothing to share.
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
    """Asks the hub once, where every file would ask for itself and again: without a network there is an answer soon."""
    import huggingface_hub
    from huggingface_hub import errors

    away = ""
    try:
        huggingface_hub.HfApi().model_info(name, revision=revision, timeout=HUB_TIMEOUT)
    except errors.GatedRepoError:
        raise UsageError(
            f"The hub gives {name} only to those it knows: ask for access there, and `hf auth login`."
        ) from None
    except (errors.RepositoryNotFoundError, errors.HFValidationError):
        raise UsageError(f"There is no model {name} on the hub, and no folder of that name here.") from None
    except errors.RevisionNotFoundError:
        raise UsageError(f"The model {name} on the hub has no revision {revision}.") from None
    except Exception as error:  # the library lets through whatever goes wrong on the way
        away = _first_line(error)
    try:
        file = huggingface_hub.hf_hub_download(name, "config.json", revision=revision, local_files_only=bool(away))
    except Exception as error:
        reason = f"the hub cannot be reached ({away}), and it is not on this machine" if away else _first_line(error)
        raise UsageError(f"Cannot load hf/{name}: {reason}.") from None
    commit = Path(file).parent.name
    # From here on by commit: whatever is pushed meanwhile, all files are of the same state.
    return Source(name, {"revision": commit, "local_files_only": bool(away)}, "", commit)


def _merge_adapter(model: Any, name: str) -> tuple[Any, str]:
    """The model with the adapter worked into its weights, and what identifies the adapter."""
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
    """Loading runs the code of others, which fails in all manners; a user is told in one sentence."""
    try:
        yield
    except UsageError:
        raise
    except Exception as error:
        cure = " With --trust-remote-code it may run its own code." if "trust_remote_code" in str(error) else ""
        raise UsageError(f"Cannot load hf/{name}: {_first_line(error)}.{cure}") from error


def _first_line(error: Exception) -> str:
    lines = str(error).strip().splitlines() or [type(error).__name__]
    return lines[0].strip().rstrip(".:")


@contextmanager
def _without_progress_bars(transformers: Any) -> Iterator[None]:
    """Weights that are here are loaded in silence; a download has its bar from the hub's own library."""
    logging = transformers.utils.logging
    shown = logging.is_progress_bar_enabled()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        if shown:
            logging.enable_progress_bar()


def folder_digest(folder: Path) -> str:
    """A hash over the files of a model.

    Weights are too many to be read whole each time; sizes, and a header with the tensors' names, are the same for two
    states of one training. So a thousandth of a large file is hashed, spread evenly: training changes nearly every
    number of every large tensor and cannot go unseen. Somebody who changes single numbers on purpose can.
    """
    digest = hashlib.sha256()
    for path in sorted(folder.iterdir()):
        if path.suffix in HASHED_SUFFIXES and path.is_file():
            size = path.stat().st_size
            digest.update(f"{path.name}\0{size}\0".encode())
            with path.open("rb") as file:
                digest.update(file.read(HEAD_BYTES))
                for place in (*range(HEAD_BYTES, size, STRIDE), max(HEAD_BYTES, size - BLOCK)):
                    file.seek(place)
                    digest.update(file.read(BLOCK))
    return digest.hexdigest()
