"""Triton kernels: paged attention of one new token per row, and sampling of the next token.

`attention` and `sampler` compute the same in PyTorch; the kernels read each input once. A
row's result depends on that row alone, so it does not depend on the batch.
"""

# Triton compiles a language of its own, with constants in capitals and types of its own.
# ruff: noqa: N803
# mypy: disable-error-code="no-untyped-def, untyped-decorator, import-not-found, import-untyped"

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

MIN_TILE = 16  # rows and columns of the smallest matrix product of the hardware
ATTENTION_WARPS, ATTENTION_STAGES = 1, 3
VOCABULARY_TILE, VOCABULARY_WARPS = 4_096, 8


def attend(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    keys: Tensor,
    values: Tensor,
    tables: Tensor,
    shared: Tensor,
    own: Tensor,
    scaling: float,
    window: int | None,
) -> Tensor:
    """Store each row's new key and value, and attend to all its tokens: [rows, heads, width]."""
    rows, heads, _, key_width = query.shape
    kv_heads, value_width = key.shape[1], value.shape[-1]
    query, key, value = query.squeeze(2), key.squeeze(2), value.squeeze(2)
    out = torch.empty(rows, heads, value_width, dtype=query.dtype, device=query.device)
    group = heads // kv_heads
    _attend[(rows, kv_heads)](
        query,
        _dense(key),
        _dense(value),
        out,
        keys,
        values,
        tables,
        shared,
        own,
        scaling,
        window or 0,
        tables.stride(0),
        query.stride(0),
        query.stride(1),
        key.stride(0),
        key.stride(1),
        value.stride(0),
        value.stride(1),
        KV_HEADS=kv_heads,
        GROUP=group,
        GROUP_TILE=max(MIN_TILE, triton.next_power_of_2(group)),
        PAGE=keys.shape[2],
        KEY_WIDTH=key_width,
        KEY_TILE=max(MIN_TILE, triton.next_power_of_2(key_width)),
        VALUE_WIDTH=value_width,
        VALUE_TILE=max(MIN_TILE, triton.next_power_of_2(value_width)),
        WINDOWED=window is not None,
        PRECISION="ieee" if query.dtype == torch.float32 else "tf32",
        num_warps=ATTENTION_WARPS,
        num_stages=ATTENTION_STAGES,
    )
    return out


def _dense(tensor: Tensor) -> Tensor:
    """The kernels need the last dimension to be contiguous."""
    return tensor if tensor.stride(-1) == 1 else tensor.contiguous()


@triton.jit
def _attend(
    query,
    key,
    value,
    out,
    keys,
    values,
    tables,
    shared_lengths,
    own_lengths,
    scaling,
    window,
    table_stride,
    query_row,
    query_head,
    key_row,
    key_head,
    value_row,
    value_head,
    KV_HEADS: tl.constexpr,
    GROUP: tl.constexpr,
    GROUP_TILE: tl.constexpr,
    PAGE: tl.constexpr,
    KEY_WIDTH: tl.constexpr,
    KEY_TILE: tl.constexpr,
    VALUE_WIDTH: tl.constexpr,
    VALUE_TILE: tl.constexpr,
    WINDOWED: tl.constexpr,
    PRECISION: tl.constexpr,
):
    row = tl.program_id(0).to(tl.int64)
    head = tl.program_id(1)
    shared = tl.load(shared_lengths + row).to(tl.int32)
    own = tl.load(own_lengths + row).to(tl.int32)
    table = tables + row * table_stride
    shared_pages = (shared + PAGE - 1) // PAGE

    member = tl.arange(0, GROUP_TILE)
    k_column = tl.arange(0, KEY_TILE)
    v_column = tl.arange(0, VALUE_TILE)
    offset = tl.arange(0, PAGE)
    k_inside = k_column < KEY_WIDTH
    v_inside = v_column < VALUE_WIDTH
    heads_of_group = head * GROUP + member

    q = tl.load(
        query + row * query_row + heads_of_group[:, None] * query_head + k_column[None, :],
        mask=(member < GROUP)[:, None] & k_inside[None, :],
        other=0.0,
    )
    new_k = tl.load(key + row * key_row + head * key_head + k_column, mask=k_inside, other=0.0)
    new_v = tl.load(value + row * value_row + head * value_head + v_column, mask=v_inside, other=0.0)
    page = tl.load(table + shared_pages + own // PAGE).to(tl.int64)
    line = (page * KV_HEADS + head) * PAGE + own % PAGE
    tl.store(keys + line * KEY_WIDTH + k_column, new_k, mask=k_inside)
    tl.store(values + line * VALUE_WIDTH + v_column, new_v, mask=v_inside)

    # Start with the new token, so that the running maximum and sum are finite.
    scale = scaling * 1.4426950408889634  # to the base of two
    highest = tl.sum(q.to(tl.float32) * new_k.to(tl.float32)[None, :], 1) * scale
    total = tl.full([GROUP_TILE], 1.0, tl.float32)
    weighted = tl.zeros([GROUP_TILE, VALUE_TILE], tl.float32) + new_v.to(tl.float32)[None, :]

    pages = shared_pages + (own + PAGE - 1) // PAGE
    first = 0
    if WINDOWED:
        oldest = shared + own - window + 1
        if oldest >= shared:
            first = shared_pages + (oldest - shared) // PAGE
        elif oldest > 0:
            first = oldest // PAGE
    for number in range(first, pages):
        page = tl.load(table + number).to(tl.int64)
        is_own = number >= shared_pages
        at = tl.where(is_own, number - shared_pages, number) * PAGE + offset
        valid = at < tl.where(is_own, own, shared)
        if WINDOWED:
            position = at + tl.where(is_own, shared, 0)
            valid = valid & (position > shared + own - window)
        lines = (page * KV_HEADS + head) * PAGE + offset
        k = tl.load(
            keys + lines[:, None] * KEY_WIDTH + k_column[None, :], mask=valid[:, None] & k_inside[None, :], other=0.0
        )
        v = tl.load(
            values + lines[:, None] * VALUE_WIDTH + v_column[None, :],
            mask=valid[:, None] & v_inside[None, :],
            other=0.0,
        )
        scores = tl.dot(q, tl.trans(k), input_precision=PRECISION) * scale
        scores = tl.where(valid[None, :], scores, -float("inf"))
        higher = tl.maximum(highest, tl.max(scores, 1))
        decay = tl.exp2(highest - higher)
        weights = tl.exp2(scores - higher[:, None])
        total = total * decay + tl.sum(weights, 1)
        weighted = weighted * decay[:, None] + tl.dot(weights.to(v.dtype), v, input_precision=PRECISION)
        highest = higher
    tl.store(
        out + (row * KV_HEADS * GROUP + heads_of_group[:, None]) * VALUE_WIDTH + v_column[None, :],
        (weighted / total[:, None]).to(out.dtype.element_ty),
        mask=(member < GROUP)[:, None] & v_inside[None, :],
    )


def pick(logits: Tensor, temperature: Tensor, top_k: Tensor, top_p: Tensor, draws: Tensor) -> Tensor:
    """The next token of every row, as `sampler.pick` chooses it."""
    logits = _dense(logits)
    chosen = torch.empty(len(logits), dtype=torch.int64, device=logits.device)
    grid: Any = (len(logits),)
    _pick[grid](
        logits,
        chosen,
        temperature,
        top_k,
        top_p,
        draws,
        logits.stride(0),
        logits.shape[-1],
        TILE=VOCABULARY_TILE,
        num_warps=VOCABULARY_WARPS,
    )
    return chosen


@triton.jit
def _distances(logits, start, size, best, temperature, TILE: tl.constexpr):
    """The scaled distance of each logit from the maximum, at least 0; infinite outside the vocabulary."""
    column = start + tl.arange(0, TILE)
    x = tl.load(logits + column, mask=column < size, other=-float("inf")).to(tl.float32)
    return (best - x) / temperature


@triton.jit
def _bits(distance):
    """The bits of nonnegative floats, which have the same order as the floats."""
    return distance.to(tl.int32, bitcast=True)


@triton.jit
def _pick(
    logits,
    chosen,
    temperatures,
    ks,
    masses,
    draws,
    stride,
    size,
    TILE: tl.constexpr,
):
    row = tl.program_id(0).to(tl.int64)
    logits += row * stride
    best = -float("inf")
    token = 0
    for start in range(0, size, TILE):
        column = start + tl.arange(0, TILE)
        x = tl.load(logits + column, mask=column < size, other=-float("inf")).to(tl.float32)
        here = tl.max(x, 0)
        if here > best:
            best = here
            token = tl.min(tl.where(x == here, column, size), 0)
    temperature = tl.load(temperatures + row).to(tl.float32)
    if temperature > 0:
        temperature = tl.maximum(temperature, 1e-30)  # the hardware may flush smaller floats to 0
        k = tl.load(ks + row)
        mass = tl.load(masses + row)
        cutoff = 0x7F7FFFFF  # of all that are finite
        if k < size:
            # Search the smallest distance that includes k tokens; three probes quarter the interval.
            low = 0
            high = cutoff
            while low < high:
                quarter = (high - low) // 4
                one = low + quarter
                two = low + (high - low) // 2
                three = high - quarter - 1
                within_one = tl.zeros([TILE], tl.int32)
                within_two = tl.zeros([TILE], tl.int32)
                within_three = tl.zeros([TILE], tl.int32)
                for start in range(0, size, TILE):
                    bits = _bits(_distances(logits, start, size, best, temperature, TILE))
                    within_one += (bits <= one).to(tl.int32)
                    within_two += (bits <= two).to(tl.int32)
                    within_three += (bits <= three).to(tl.int32)
                if tl.sum(within_two, 0) >= k:
                    high = two
                    if tl.sum(within_one, 0) >= k:
                        high = one
                    else:
                        low = one + 1
                else:
                    low = two + 1
                    if tl.sum(within_three, 0) >= k:
                        high = three
                    else:
                        low = tl.maximum(low, three + 1)
            cutoff = high
        if mass < 1:
            weights = tl.zeros([TILE], tl.float32)
            for start in range(0, size, TILE):
                distance = _distances(logits, start, size, best, temperature, TILE)
                weights += tl.where(_bits(distance) <= cutoff, tl.exp(-distance), 0.0)
            target = tl.sum(weights, 0) * mass.to(tl.float32)
            # Search the largest distance with less than that mass before it.
            low = 0
            high = cutoff
            while low < high:
                quarter = (high - low) // 4
                one = low + quarter + 1
                two = high - (high - low) // 2
                three = high - quarter
                before_one = tl.zeros([TILE], tl.float32)
                before_two = tl.zeros([TILE], tl.float32)
                before_three = tl.zeros([TILE], tl.float32)
                for start in range(0, size, TILE):
                    distance = _distances(logits, start, size, best, temperature, TILE)
                    bits = _bits(distance)
                    weight = tl.exp(-distance)
                    before_one += tl.where(bits < one, weight, 0.0)
                    before_two += tl.where(bits < two, weight, 0.0)
                    before_three += tl.where(bits < three, weight, 0.0)
                if tl.sum(before_two, 0) < target:
                    low = two
                    if tl.sum(before_three, 0) < target:
                        low = three
                    else:
                        high = three - 1
                else:
                    high = two - 1
                    if tl.sum(before_one, 0) < target:
                        low = one
                    else:
                        high = tl.minimum(high, one - 1)
            cutoff = low
        # Invert the cumulative distribution, in the order of the vocabulary, at the draw.
        width = tl.zeros([], tl.float64)
        for start in range(0, size, TILE):
            distance = _distances(logits, start, size, best, temperature, TILE)
            weight = tl.where(_bits(distance) <= cutoff, tl.exp(-distance), 0.0).to(tl.float64)
            width += tl.sum(weight, 0)
        point = tl.load(draws + row) * width
        passed = tl.zeros([], tl.float64)
        chosen_token = size
        start = 0
        while (start < size) & (chosen_token == size):
            column = start + tl.arange(0, TILE)
            distance = _distances(logits, start, size, best, temperature, TILE)
            weight = tl.where(_bits(distance) <= cutoff, tl.exp(-distance), 0.0).to(tl.float64)
            ends = passed + tl.cumsum(weight, 0)
            chosen_token = tl.min(tl.where((ends > point) & (weight > 0), column, size), 0)
            passed += tl.sum(weight, 0)
            start += TILE
        if chosen_token < size:  # else the two sums differ by rounding: keep the argmax
            token = chosen_token
    tl.store(chosen + row, token)
