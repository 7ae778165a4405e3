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

from proctor.config import RunConfig, user_path
from proctor.errors import MissingExtraError, UsageError

PRECISIONS = {"fp32": "float32", "fp16": "float16", "bf16": "bfloat16"}
HUB_PATIENCE = 10.0  # seconds for the hub to answer; after that, what is on this machine must do

# What decides an answer. A training run leaves more in its folder, and a README may change.
TELLING = frozenset({".json", ".jinja", ".model", ".txt", ".py", ".safetensors", ".bin"})
WHOLE = 2**20  # bytes at the start of a file that are all looked at
STRIDE, BLOCK = 2**22, 2**12  # after them, one block in every stride


class Checkpoint(NamedTuple):
    model: Any
    tokenizer: Any
    identity: dict[str, str]


class Source(NamedTuple):
    place: str  # a folder, or a name on the hub
    options: dict[str, Any]  # for everything that is loaded from there
    files: str  # digest of a folder
    commit: str  # of what lies on the hub


def find_devices(count: int) -> list[str]:
    """So many GPUs; one processor is there for everybody who has none."""
    torch, _ = _import_libraries()
    found = [f"cuda:{number}" for number in range(torch.cuda.device_count())]
    if count > max(len(found), 1):
        raise UsageError(f"--devices {count}: there are {len(found)} GPUs here.")
    return found[:count] or ["cpu"]


def load(name: str, config: RunConfig, device: str) -> Checkpoint:
    torch, transformers = _import_libraries()
    quantization = _quantization(config, device, transformers)
    if config.peft_model and importlib.util.find_spec("peft") is None:
        raise MissingExtraError("An adapter (peft_model)", "peft")
    source = _find(name, config.revision)
    causal = config.modeltype == "causal"
    options = source.options | {"trust_remote_code": config.trust_remote_code}
    with _explained(name), _without_progress_bars(transformers):
        settings = transformers.AutoConfig.from_pretrained(source.place, **options)
        if settings.is_encoder_decoder == causal:
            cure = "seq2seq" if causal else "causal"
            raise UsageError(f"hf/{name} is no {config.modeltype} model: use --modeltype {cure}.")
        tokenizer = transformers.AutoTokenizer.from_pretrained(source.place, **options)
        if config.api == "chat" and not tokenizer.chat_template:
            raise UsageError(f"hf/{name} has no chat template: use --api completions.")
        kind = transformers.AutoModelForCausalLM if causal else transformers.AutoModelForSeq2SeqLM
        model, found = kind.from_pretrained(
            source.place,
            dtype=getattr(torch, PRECISIONS[config.precision]) if config.precision else "auto",
            output_loading_info=True,
            **quantization,
            **options,
        )
        if missing := sorted(found["missing_keys"]):
            # The library fills them with random numbers, and the model would answer accordingly.
            raise UsageError(f"hf/{name} lacks {len(missing)} of its weights, {missing[0]} for example.")
        if not quantization:
            model = model.to(device)
    adapter = "none"
    if config.peft_model:
        model, adapter = _adapted(model, config.peft_model)
    identity = {
        "model": f"hf/{name}",
        "commit": source.commit,
        "files": source.files,
        "dtype": str(model.dtype).removeprefix("torch."),
        "quantized": "8 bit" if config.load_in_8bit else "4 bit" if config.load_in_4bit else "no",
        "adapter": adapter,
        "runtime": ", ".join(f"{package} {version(package)}" for package in ("torch", "transformers", "tokenizers")),
    }
    return Checkpoint(model.eval(), tokenizer, identity)


def _import_libraries() -> tuple[Any, Any]:
    # Read when the library is loaded: waiting threads that spin can make busy cores many times slower.
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")
    try:
        import torch
        import transformers
    except ImportError:
        raise MissingExtraError("A model of hf/", "hf") from None
    return torch, transformers


def _quantization(config: RunConfig, device: str, transformers: Any) -> dict[str, Any]:
    if not (config.load_in_8bit or config.load_in_4bit):
        return {}
    if config.load_in_8bit and config.load_in_4bit:
        raise UsageError("load_in_8bit and load_in_4bit: a model is loaded in the one or the other.")
    if any(importlib.util.find_spec(package) is None for package in ("bitsandbytes", "accelerate")):
        raise MissingExtraError("A quantized model", "bitsandbytes")
    how = transformers.BitsAndBytesConfig(load_in_8bit=config.load_in_8bit, load_in_4bit=config.load_in_4bit)
    return {"quantization_config": how, "device_map": {"": device}}


def _find(name: str, revision: str | None) -> Source:
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
        huggingface_hub.HfApi().model_info(name, revision=revision, timeout=HUB_PATIENCE)
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


def _adapted(model: Any, name: str) -> tuple[Any, str]:
    """The model with the adapter worked into its weights, and what identifies the adapter."""
    import huggingface_hub
    import peft

    with _explained(name):
        folder = user_path(name)
        if not folder.is_dir():
            folder = Path(huggingface_hub.snapshot_download(name))
        merged = peft.PeftModel.from_pretrained(model, str(folder)).merge_and_unload()
    return merged, f"{name} {folder_digest(folder)}"


@contextmanager
def _explained(name: str) -> Iterator[None]:
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
        if path.suffix in TELLING and path.is_file():
            size = path.stat().st_size
            digest.update(f"{path.name}\0{size}\0".encode())
            with path.open("rb") as file:
                digest.update(file.read(WHOLE))
                for place in (*range(WHOLE, size, STRIDE), max(WHOLE, size - BLOCK)):
                    file.seek(place)
                    digest.update(file.read(BLOCK))
    return digest.hexdigest()
