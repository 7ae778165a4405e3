"""Tiny models with random weights, saved as folders that `hf/` can load."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

SPECIAL = ["<|endoftext|>", "<|im_start|>", "<|im_end|>", "<fim_prefix>", "<fim_suffix>", "<fim_middle>"]
END = SPECIAL[0]
TEMPLATE = (
    "{% for message in messages %}<|im_start|>{{ message.role }}\n{{ message.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
TEXT = """def add(first, second):
    return first + second
The quick brown fox jumps over the lazy dog, and the dog sleeps on. Größe, naïve, 漢字, →, 🙂.
What is in the box? There are three red circles, two blue squares and a green triangle.
"""


def make_tokenizer(template: str | None = TEMPLATE, **special: Any) -> Any:
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=400, special_tokens=SPECIAL, initial_alphabet=alphabet, show_progress=False
    )
    tokenizer.train_from_iterator([TEXT], trainer)
    made = PreTrainedTokenizerFast(tokenizer_object=tokenizer, **{"eos_token": END, "pad_token": END} | special)
    made.chat_template = template
    return made


LLAMA: dict[str, Any] = {"hidden_size": 32, "intermediate_size": 64, "num_attention_heads": 4, "num_key_value_heads": 2}
CONFIGS: dict[str, dict[str, Any]] = {
    "Llama": LLAMA,
    "GPT2": {"n_embd": 32, "n_head": 4, "n_layer": 2, "n_positions": 256},
    "Mistral": LLAMA | {"head_dim": 8, "sliding_window": 8},  # looks back eight tokens and no further
    "Lfm2": LLAMA | {"layer_types": ["conv", "full_attention"], "block_multiple_of": 8},  # a layer without keys
    # Layers that look back eight tokens beside one that sees everything, with rotations of their own.
    "Gemma3Text": LLAMA
    | {
        "head_dim": 8,
        "sliding_window": 8,
        "layer_types": ["sliding_attention", "full_attention"],
        "tie_word_embeddings": False,
    },
    "Qwen3": LLAMA | {"head_dim": 8},
    "Starcoder2": LLAMA | {"sliding_window": 40},  # longer than a page
    "GPTNeoX": LLAMA,
    "Mixtral": LLAMA | {"num_local_experts": 4, "num_experts_per_tok": 2},
    "Gemma2": LLAMA | {"head_dim": 8, "query_pre_attn_scalar": 8, "sliding_window": 8},  # caps what it attends to
    "GPTJ": {"n_embd": 32, "n_head": 4, "n_layer": 2, "n_positions": 256, "rotary_dim": 4},  # attends in its own way
    "T5": {"d_model": 32, "d_kv": 8, "d_ff": 64, "num_heads": 4, "num_layers": 2, "decoder_start_token_id": 1},
}


def make_model(kind: str, **settings: Any) -> Any:
    """A model of two layers, with weights large enough for varied outputs."""
    import torch
    import transformers

    general: dict[str, Any] = {
        "vocab_size": 400,
        "num_hidden_layers": 2,
        "bos_token_id": None,
        "eos_token_id": 0,
        "pad_token_id": 0,
    }
    general |= {"initializer_range": 0.4, "initializer_factor": 4.0, "max_position_embeddings": 256}
    config = getattr(transformers, f"{kind}Config")(**general | CONFIGS[kind] | settings)
    model_class = transformers.AutoModelForSeq2SeqLM if kind == "T5" else transformers.AutoModelForCausalLM
    torch.manual_seed(1)
    return model_class.from_config(config).eval()


# Vision models

IMAGE_TEMPLATE = (
    "{% for message in messages %}<|im_start|>{{ message.role }}\n{% for part in message.content %}"
    "{% if part.type == 'image' %}PLACE{% else %}{{ part.text }}{% endif %}"
    "{% endfor %}<|im_end|>\n{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
# Per model: the image placeholder in a text, and all image tokens, some of them by name.
IMAGE_TOKENS: dict[str, tuple[str, Any]] = {
    "Llava": ("<image>", ["<image>"]),
    "Qwen2VL": (
        "<|vision_start|><|image_pad|><|vision_end|>",
        ["<|vision_start|>", "<|image_pad|>", "<|vision_end|>", "<|video_pad|>"],
    ),
    "Idefics3": (
        "<image>",
        ["<image>", "<fake_token_around_image>", "<global-img>", "<end_of_utterance>"]
        + [f"<row_{row}_col_{column}>" for row in (1, 2) for column in (1, 2)],
    ),
    "Gemma3": (
        "<start_of_image>",
        {"boi_token": "<start_of_image>", "image_token": "<image_soft_token>", "eoi_token": "<end_of_image>"},
    ),
    "Mllama": ("<|image|>", ["<|image|>", "<|python_tag|>"]),
}
IMAGE_TOKENS["Qwen2_5_VL"] = IMAGE_TOKENS["Qwen3VL"] = IMAGE_TOKENS["Qwen2VL"]
SIDE = 28  # pixels of a picture, or of a tile, for models that want all of them to be alike
BODY: dict[str, Any] = {"hidden_size": 32, "intermediate_size": 64}
VISION_SETTINGS = BODY | {"num_hidden_layers": 2, "num_attention_heads": 4, "patch_size": 7}
VISION_SETTINGS |= {"image_size": SIDE, "initializer_range": 0.4, "initializer_factor": 20.0}


def save_vision_model(kind: str, folder: Path, template: str | None = IMAGE_TEMPLATE) -> Path:
    """A vision model, with its processor and tokenizer."""
    import torch
    import transformers

    placeholder, tokens = IMAGE_TOKENS[kind]
    template = template and template.replace("PLACE", placeholder)
    tokenizer = make_tokenizer(template, bos_token="<|im_start|>", extra_special_tokens=tokens)
    names = list(tokens.values()) if isinstance(tokens, dict) else tokens
    numbers = dict(zip(names, tokenizer.convert_tokens_to_ids(names), strict=True))
    text: dict[str, Any] = LLAMA | {
        "vocab_size": len(tokenizer),
        "num_hidden_layers": 2,
        "max_position_embeddings": 512,
    }
    text |= {"bos_token_id": 1, "eos_token_id": 0, "pad_token_id": 0, "initializer_range": 0.4}
    settings, *parts = VISION[kind](text, numbers, tokenizer, transformers)
    torch.manual_seed(1)
    model = transformers.AutoModelForImageTextToText.from_config(settings)
    for weights in model.parameters():
        if not weights.any():  # initialized to zero, so images would have no effect
            torch.nn.init.normal_(weights, std=0.4)
    transformers.utils.logging.disable_progress_bar()
    for part in (model, *parts):
        part.save_pretrained(folder)
    return folder


def _llava(text: dict[str, Any], numbers: dict[str, int], tokenizer: Any, library: Any) -> tuple[Any, ...]:
    settings = library.LlavaConfig(
        vision_config=library.CLIPVisionConfig(**VISION_SETTINGS),
        text_config=library.LlamaConfig(**text),
        image_token_index=numbers["<image>"],
    )
    size = {"size": {"shortest_edge": SIDE}, "crop_size": {"height": SIDE, "width": SIDE}}
    processor = library.LlavaProcessor(
        library.CLIPImageProcessorPil(**size),
        tokenizer,
        patch_size=7,
        vision_feature_select_strategy="default",
        num_additional_image_tokens=1,
        chat_template=tokenizer.chat_template,
    )
    return settings, processor


def _qwen(text: dict[str, Any], numbers: dict[str, int], tokenizer: Any, library: Any, kind: str) -> tuple[Any, ...]:
    vision: dict[str, Any] = {"depth": 2, "num_heads": 4, "patch_size": 7, "initializer_range": 0.4}
    vision |= {
        "Qwen2VL": {"embed_dim": 32, "hidden_size": 32},
        "Qwen2_5_VL": BODY | {"out_hidden_size": 32, "window_size": 28, "fullatt_block_indexes": [1]},
        "Qwen3VL": BODY | {"out_hidden_size": 32, "num_position_embeddings": 64, "deepstack_visual_indexes": [0]},
    }[kind]
    rotation = {"rope_type": "default", "rope_theta": 10_000.0, "mrope_section": [2, 1, 1]}
    settings = getattr(library, f"{kind}Config")(
        text_config=text | {"head_dim": 8, "rope_parameters": rotation},
        vision_config=vision,
        image_token_id=numbers["<|image_pad|>"],
        video_token_id=numbers["<|video_pad|>"],
        vision_start_token_id=numbers["<|vision_start|>"],
        vision_end_token_id=numbers["<|vision_end|>"],
    )
    size = {"patch_size": 7, "size": {"shortest_edge": 14 * 14, "longest_edge": 14 * 14 * 24}}
    # Saved in parts, because a whole processor would need a video processor.
    return settings, library.Qwen2VLImageProcessorPil(**size), tokenizer


def _idefics(text: dict[str, Any], numbers: dict[str, int], tokenizer: Any, library: Any) -> tuple[Any, ...]:
    settings = library.Idefics3Config(
        text_config=library.LlamaConfig(**text),
        vision_config=VISION_SETTINGS,
        image_token_id=numbers["<image>"],
        scale_factor=2,
        pad_token_id=0,
    )
    size = {"size": {"longest_edge": 2 * SIDE}, "max_image_size": {"longest_edge": SIDE}}
    processor = library.Idefics3Processor(
        library.Idefics3ImageProcessorPil(**size), tokenizer, image_seq_len=4, chat_template=tokenizer.chat_template
    )
    return settings, processor


def _gemma(text: dict[str, Any], numbers: dict[str, int], tokenizer: Any, library: Any) -> tuple[Any, ...]:
    settings = library.Gemma3Config(
        text_config=text | {key: CONFIGS["Gemma3Text"][key] for key in ("head_dim", "sliding_window", "layer_types")},
        vision_config=VISION_SETTINGS | {"model_type": "siglip_vision_model"},
        mm_tokens_per_image=4,
        boi_token_index=numbers["<start_of_image>"],
        eoi_token_index=numbers["<end_of_image>"],
        image_token_index=numbers["<image_soft_token>"],
        tie_word_embeddings=False,
    )
    processor = library.Gemma3Processor(
        library.Gemma3ImageProcessorPil(size={"height": SIDE, "width": SIDE}),
        tokenizer,
        image_seq_length=4,
        chat_template=tokenizer.chat_template,
    )
    return settings, processor


def _mllama(text: dict[str, Any], numbers: dict[str, int], tokenizer: Any, library: Any) -> tuple[Any, ...]:
    """A model with cross-attention to images."""
    vision = BODY | {"attention_heads": 4, "image_size": SIDE, "patch_size": 14}
    vision |= {
        "num_hidden_layers": 2,
        "num_global_layers": 1,
        "intermediate_layers_indices": [0],
        "vision_output_dim": 64,
    }
    settings = library.MllamaConfig(
        vision_config=vision | {"initializer_range": 0.4},
        text_config=text | {"num_hidden_layers": 3, "cross_attention_layers": [1]},
        image_token_index=numbers["<|image|>"],
    )
    size = {"height": SIDE, "width": SIDE}
    processor = library.MllamaProcessor(
        library.MllamaImageProcessorPil(size=size, max_image_tiles=4), tokenizer, chat_template=tokenizer.chat_template
    )
    return settings, processor


VISION: dict[str, Any] = {
    "Llava": _llava,
    "Qwen2VL": partial(_qwen, kind="Qwen2VL"),
    "Qwen2_5_VL": partial(_qwen, kind="Qwen2_5_VL"),
    "Qwen3VL": partial(_qwen, kind="Qwen3VL"),
    "Idefics3": _idefics,
    "Gemma3": _gemma,
    "Mllama": _mllama,
}
