"""The forward pass of the `llama` and `gemma3` families in plain float32 numpy.

Written from the papers and the published model definitions, not from the C++ code, so that the two
can disagree. It reads the weights from a GGUF file through the `gguf` package and works in the
conventions of the original checkpoints (rotary pairs are the two halves of a head).
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from gguf import GGUFReader
from gguf.quants import dequantize

QUERY_CHUNK = 256  # queries per attention step: bounds the score matrix, no effect on the result


class Weights:
    """Tensors by GGUF name, decoded to float32 when asked for (a layer at a time fits anywhere)."""

    def __init__(self, path: Path):
        self.reader = GGUFReader(path)
        self._tensors = {tensor.name: tensor for tensor in self.reader.tensors}

    def __contains__(self, name: str) -> bool:
        return name in self._tensors

    def __getitem__(self, name: str) -> np.ndarray:
        tensor = self._tensors[name]
        shape = tuple(int(n) for n in reversed(tensor.shape))
        return dequantize(tensor.data, tensor.tensor_type).astype(np.float32).reshape(shape)

    def meta(self, key: str, default=None):
        field = self.reader.fields.get(key)
        return default if field is None else field.contents()


def rms_norm(x: np.ndarray, weight: np.ndarray, epsilon: float) -> np.ndarray:
    mean_square = np.mean(np.square(x), axis=-1, keepdims=True)
    return x / np.sqrt(mean_square + np.float32(epsilon)) * weight


def silu(x: np.ndarray) -> np.ndarray:
    return x / (1.0 + np.exp(-x))


def gelu_tanh(x: np.ndarray) -> np.ndarray:
    inner = np.float32(np.sqrt(2.0 / np.pi)) * (x + np.float32(0.044715) * x * x * x)
    return np.float32(0.5) * x * (1.0 + np.tanh(inner))


def rotary_table(positions: int, head_dim: int, base: float) -> tuple[np.ndarray, np.ndarray]:
    frequencies = base ** (-np.arange(0, head_dim, 2, dtype=np.float64) / head_dim)
    angles = np.outer(np.arange(positions, dtype=np.float64), frequencies)
    return np.cos(angles).astype(np.float32), np.sin(angles).astype(np.float32)


def rotate(x: np.ndarray, table: tuple[np.ndarray, np.ndarray]) -> np.ndarray:
    """x: [positions, heads, head_dim]; the pair of element i is element i + head_dim / 2."""
    cos, sin = (part[:, None, :] for part in table)
    half = x.shape[-1] // 2
    first, second = x[..., :half], x[..., half:]
    return np.concatenate([first * cos - second * sin, second * cos + first * sin], axis=-1)


def pairs_to_halves(weight: np.ndarray, heads: int) -> np.ndarray:
    """Undoes the row order in which GGUF files of the llama family keep q and k.

    The converter stores the rows of a head as 0, d/2, 1, d/2+1, ...
    """
    rows, columns = weight.shape
    per_head = rows // heads
    return (
        weight.reshape(heads, per_head // 2, 2, columns).swapaxes(1, 2).reshape(rows, columns)
    )


def attention(q, k, v, scale: float, window: int) -> np.ndarray:
    """Causal attention. q: [n, heads, d]; k, v: [n, kv heads, d]; window 0 = unlimited."""
    n, heads, d = q.shape
    kv_heads = k.shape[1]
    group = heads // kv_heads
    out = np.empty((n, heads, d), dtype=np.float32)
    for start in range(0, n, QUERY_CHUNK):
        stop = min(n, start + QUERY_CHUNK)
        first = max(0, start - window + 1) if window else 0
        query_at = np.arange(start, stop)[:, None]
        key_at = np.arange(first, stop)[None, :]
        hidden = key_at > query_at
        if window:
            hidden |= key_at <= query_at - window
        for g in range(kv_heads):
            keys = k[first:stop, g]
            values = v[first:stop, g]
            for h in range(g * group, (g + 1) * group):
                scores = (q[start:stop, h] * np.float32(scale)) @ keys.T
                scores[hidden] = -np.inf
                scores -= scores.max(axis=-1, keepdims=True)
                np.exp(scores, out=scores)
                total = scores.sum(axis=-1, keepdims=True)
                out[start:stop, h] = (scores @ values) / total
    return out


class ReferenceModel:
    def __init__(self, path: Path):
        self.weights = Weights(path)
        self.family = self.weights.meta("general.architecture")
        if self.family not in ("llama", "gemma3"):
            raise ValueError(f"{path}: no reference for architecture {self.family!r}")
        self.layers = self._number("block_count")
        self.hidden_size = self._number("embedding_length")
        self.heads = self._number("attention.head_count")
        self.kv_heads = self._number("attention.head_count_kv")
        self.head_dim = self._number("attention.key_length", self.hidden_size // self.heads)
        self.epsilon = self._number("attention.layer_norm_rms_epsilon")
        self.rope_base = self._number("rope.freq_base", 10000.0)
        self.embedding = self.weights["token_embd.weight"]

    def _number(self, key: str, default=None):
        return self.weights.meta(f"{self.family}.{key}", default)

    def hidden_states(self, ids: np.ndarray) -> np.ndarray:
        """Final hidden states, normed, [positions, hidden]: what the output matrix multiplies."""
        run = self._gemma3 if self.family == "gemma3" else self._llama
        return rms_norm(run(np.asarray(ids)), self.weights["output_norm.weight"], self.epsilon)

    def logits(self, hidden: np.ndarray) -> np.ndarray:
        tied = "output.weight" not in self.weights
        return hidden @ (self.embedding if tied else self.weights["output.weight"]).T

    def _heads_of(self, x: np.ndarray, weight: np.ndarray, heads: int) -> np.ndarray:
        return (x @ weight.T).reshape(len(x), heads, self.head_dim)

    def _llama(self, ids: np.ndarray) -> np.ndarray:
        w = self.weights
        table = rotary_table(len(ids), self.head_dim, self.rope_base)
        x = self.embedding[ids]
        for layer in range(self.layers):
            name = f"blk.{layer}."
            y = rms_norm(x, w[name + "attn_norm.weight"], self.epsilon)
            wq = pairs_to_halves(w[name + "attn_q.weight"], self.heads)
            wk = pairs_to_halves(w[name + "attn_k.weight"], self.kv_heads)
            q = rotate(self._heads_of(y, wq, self.heads), table)
            k = rotate(self._heads_of(y, wk, self.kv_heads), table)
            v = self._heads_of(y, w[name + "attn_v.weight"], self.kv_heads)
            y = attention(q, k, v, self.head_dim**-0.5, window=0).reshape(len(ids), -1)
            x = x + y @ w[name + "attn_output.weight"].T
            y = rms_norm(x, w[name + "ffn_norm.weight"], self.epsilon)
            gate = silu(y @ w[name + "ffn_gate.weight"].T)
            x = x + (gate * (y @ w[name + "ffn_up.weight"].T)) @ w[name + "ffn_down.weight"].T
        return x

    def _gemma3(self, ids: np.ndarray) -> np.ndarray:
        """Norm weights in GGUF files already hold the "1 +" of the original definition."""
        w, epsilon = self.weights, self.epsilon
        window = self._number("attention.sliding_window")
        local_table = rotary_table(len(ids), self.head_dim, 10000.0)
        global_table = rotary_table(len(ids), self.head_dim, self.rope_base)
        x = self.embedding[ids] * np.float32(np.sqrt(self.hidden_size))
        for layer in range(self.layers):
            name = f"blk.{layer}."
            is_global = (layer + 1) % 6 == 0
            table = global_table if is_global else local_table
            y = rms_norm(x, w[name + "attn_norm.weight"], epsilon)
            q = self._heads_of(y, w[name + "attn_q.weight"], self.heads)
            k = self._heads_of(y, w[name + "attn_k.weight"], self.kv_heads)
            v = self._heads_of(y, w[name + "attn_v.weight"], self.kv_heads)
            q = rotate(rms_norm(q, w[name + "attn_q_norm.weight"], epsilon), table)
            k = rotate(rms_norm(k, w[name + "attn_k_norm.weight"], epsilon), table)
            y = attention(q, k, v, 256**-0.5, window=0 if is_global else window)
            y = y.reshape(len(ids), -1) @ w[name + "attn_output.weight"].T
            x = x + rms_norm(y, w[name + "post_attention_norm.weight"], epsilon)
            y = rms_norm(x, w[name + "ffn_norm.weight"], epsilon)
            y = gelu_tanh(y @ w[name + "ffn_gate.weight"].T) * (y @ w[name + "ffn_up.weight"].T)
            y = y @ w[name + "ffn_down.weight"].T
            x = x + rms_norm(y, w[name + "post_ffw_norm.weight"], epsilon)
        return x
