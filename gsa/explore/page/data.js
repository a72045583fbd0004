// Packed tensors: base64 of deflated little-endian numbers → a typed array, with its shape.

const TYPES = { uint8: Uint8Array, int8: Int8Array, float32: Float32Array, float64: Float64Array };

async function unpack(stored) {
  const bytes = Uint8Array.from(atob(stored.data), (letter) => letter.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  const values = new TYPES[stored.type](await new Response(stream).arrayBuffer());
  return { values, shape: stored.shape, scale: stored.scale };
}

// Everything packed, at any depth, is unpacked in its place.
async function unpackAll(data) {
  for (const [name, value] of Object.entries(data)) {
    if (value === null || typeof value !== "object") continue;
    if ("data" in value && "shape" in value) data[name] = await unpack(value);
    else await unpackAll(value);
  }
  return data;
}

// The part of a tensor at the first indices given, as an array of numbers.
function at(tensor, ...indices) {
  let size = tensor.shape.reduce((product, side) => product * side, 1);
  let start = 0;
  indices.forEach((index, axis) => {
    size /= tensor.shape[axis];
    start += index * size;
  });
  return Array.from(tensor.values.subarray(start, start + size), (value) => value * tensor.scale);
}
