"""Models of a few thousand random weights, made on the spot and saved as a folder that `hf/` can open."""

from __future__ import annotations

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


def make_tokenizer(template: str | None = TEMPLATE, **special: str) -> Any:
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


LLAMA = {"hidden_size": 32, "intermediate_size": 64, "num_attention_heads": 4, "num_key_value_heads": 2}
SHAPES: dict[str, dict[str, Any]] = {
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
    """A model of two layers, with weights large enough for it to be of many minds."""
    import torch
    import transformers

    general = {"vocab_size": 400, "num_hidden_layers": 2, "bos_token_id": None, "eos_token_id": 0, "pad_token_id": 0}
    general |= {"initializer_range": 0.4, "initializer_factor": 4.0, "max_position_embeddings": 256}
    config = getattr(transformers, f"{kind}Config")(**general | SHAPES[kind] | settings)
    model_class = transformers.AutoModelForSeq2SeqLM if kind == "T5" else transformers.AutoModelForCausalLM
    torch.manual_seed(1)
    return model_class.from_config(config).eval()
