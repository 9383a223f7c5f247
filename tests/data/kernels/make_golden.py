"""Writes dequantize.bin: blocks of every quantised type and what they decode to.

Needs the Python packages numpy and gguf (the reference implementation of the format):
    python make_golden.py
Records follow each other, little-endian:
    u32 gguf type, u32 elements, u32 bytes, the encoded bytes, the elements as float32
Some blocks come from the reference quantiser, the others are random bytes with ordinary scales, so
that every bit pattern of the quants occurs.
"""

import pathlib
import struct

import numpy
from gguf import GGMLQuantizationType as Type
from gguf import quants

# Where the half-precision scales of a block lie, so that random ones can be replaced.
SCALES = {
    Type.Q8_0: [0], Type.Q4_0: [0], Type.Q4_1: [0, 2], Type.Q5_0: [0], Type.Q5_1: [0, 2],
    Type.Q4_K: [0, 2], Type.Q5_K: [0, 2], Type.Q6_K: [208],
}
CAN_QUANTISE = {Type.Q8_0, Type.Q4_0, Type.Q4_1, Type.Q5_0, Type.Q5_1}
BLOCK = {
    Type.Q8_0: (32, 34), Type.Q4_0: (32, 18), Type.Q4_1: (32, 20), Type.Q5_0: (32, 22),
    Type.Q5_1: (32, 24), Type.Q4_K: (256, 144), Type.Q5_K: (256, 176), Type.Q6_K: (256, 210),
}

random = numpy.random.default_rng(20261130)


def random_blocks(kind, blocks):
    size = BLOCK[kind][1]
    data = random.integers(0, 256, (blocks, size), dtype=numpy.uint8)
    for at in SCALES[kind]:
        scale = (random.standard_normal(blocks) * 0.1).astype(numpy.float16)
        scale[0] = numpy.float16(3e-6)  # subnormal
        data[:, at:at + 2] = scale.view(numpy.uint8).reshape(blocks, 2)
    return data.reshape(1, -1)


def record(kind, data, elements):
    values = quants.dequantize(data, kind).astype("<f4").reshape(-1)
    assert values.size == elements
    return struct.pack("<III", kind, elements, data.size) + data.tobytes() + values.tobytes()


out = b""
for kind in SCALES:
    elements, _ = BLOCK[kind]
    blocks = 1024 // elements
    out += record(kind, random_blocks(kind, blocks), 1024)
    if kind in CAN_QUANTISE:
        values = random.standard_normal((1, 256)).astype(numpy.float32)
        out += record(kind, quants.quantize(values, kind), 256)
halves = numpy.arange(0, 65536, 37, dtype=numpy.uint16)
halves = halves[(halves & 0x7C00) != 0x7C00]
out += struct.pack("<III", Type.F16, halves.size, 2 * halves.size) + halves.tobytes()
out += halves.view(numpy.float16).astype("<f4").tobytes()
pathlib.Path(__file__).with_name("dequantize.bin").write_bytes(out)
