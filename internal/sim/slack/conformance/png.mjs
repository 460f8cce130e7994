// Smaller PNG files: the screenshots of a browser use few colours, so 256 of them are enough.
import zlib from 'node:zlib';

// shrink turns a PNG of 8 bits per channel, not interlaced, into one with a palette.
export function shrink(png) {
  const { width, height, channels, data } = decode(png);
  const seen = new Map(); // colour -> how often
  const pixels = new Uint32Array(width * height);
  for (let i = 0; i < pixels.length; i++) {
    const o = i * channels;
    pixels[i] = data[o] << 16 | data[o + 1] << 8 | data[o + 2];
    seen.set(pixels[i], (seen.get(pixels[i]) || 0) + 1);
  }
  const palette = choose(seen);
  const nearest = new Map();
  const rows = Buffer.alloc((width + 1) * height);
  for (let y = 0; y < height; y++) {
    for (let x = 0; x < width; x++) {
      const c = pixels[y * width + x];
      if (!nearest.has(c)) nearest.set(c, closest(palette, c));
      rows[y * (width + 1) + 1 + x] = nearest.get(c);
    }
  }
  const head = Buffer.alloc(13);
  head.writeUInt32BE(width, 0);
  head.writeUInt32BE(height, 4);
  head[8] = 8;
  head[9] = 3;
  return Buffer.concat([signature, chunk('IHDR', head), chunk('PLTE', Buffer.from(palette.flatMap(c => [c >> 16, c >> 8 & 255, c & 255]))),
    chunk('IDAT', zlib.deflateSync(rows, { level: 9, memLevel: 9 })), chunk('IEND', Buffer.alloc(0))]);
}

const distance = (a, b) => ((a >> 16) - (b >> 16)) ** 2 + ((a >> 8 & 255) - (b >> 8 & 255)) ** 2 + ((a & 255) - (b & 255)) ** 2;

function closest(palette, c) {
  let best = 0;
  for (let i = 1; i < palette.length; i++) if (distance(palette[i], c) < distance(palette[best], c)) best = i;
  return best;
}

// choose takes the frequent colours that are not nearly the same as one already taken; the less room
// is left the more they have to differ.
function choose(seen) {
  const byUse = [...seen].sort((a, b) => b[1] - a[1] || a[0] - b[0]).slice(0, 6000).map(e => e[0]);
  const taken = [];
  for (const apart of [400, 150, 40, 12, 0]) {
    for (const c of byUse) {
      if (taken.length === 256) return taken;
      if (taken.every(t => distance(t, c) > apart)) taken.push(c);
    }
  }
  return taken;
}

const signature = Buffer.from([137, 80, 78, 71, 13, 10, 26, 10]);

function chunk(name, body) {
  const out = Buffer.alloc(body.length + 12);
  out.writeUInt32BE(body.length, 0);
  out.write(name, 4, 'latin1');
  body.copy(out, 8);
  out.writeUInt32BE(zlib.crc32 ? zlib.crc32(out.subarray(4, -4)) : crc(out.subarray(4, -4)), body.length + 8);
  return out;
}

function crc(bytes) {
  let c = ~0;
  for (const b of bytes) {
    c ^= b;
    for (let k = 0; k < 8; k++) c = c & 1 ? 0xedb88320 ^ (c >>> 1) : c >>> 1;
  }
  return ~c >>> 0;
}

function decode(png) {
  let at = 8, width = 0, height = 0, channels = 0;
  const parts = [];
  while (at < png.length) {
    const size = png.readUInt32BE(at), name = png.toString('latin1', at + 4, at + 8), body = png.subarray(at + 8, at + 8 + size);
    if (name === 'IHDR') {
      [width, height, channels] = [body.readUInt32BE(0), body.readUInt32BE(4), { 2: 3, 6: 4 }[body[9]]];
      if (body[8] !== 8 || !channels || body[12]) throw new Error('a PNG that a browser does not write');
    }
    if (name === 'IDAT') parts.push(body);
    at += size + 12;
  }
  return { width, height, channels, data: unfilter(zlib.inflateSync(Buffer.concat(parts)), width * channels, height, channels) };
}

function unfilter(raw, stride, height, step) {
  const out = Buffer.alloc(stride * height);
  for (let y = 0; y < height; y++) {
    const kind = raw[y * (stride + 1)];
    for (let x = 0; x < stride; x++) {
      const o = y * stride + x;
      const a = x >= step ? out[o - step] : 0, b = y ? out[o - stride] : 0, c = x >= step && y ? out[o - stride - step] : 0;
      out[o] = raw[y * (stride + 1) + 1 + x] + [0, a, b, (a + b) >> 1, paeth(a, b, c)][kind];
    }
  }
  return out;
}

function paeth(a, b, c) {
  const [pa, pb, pc] = [Math.abs(b - c), Math.abs(a - c), Math.abs(a + b - 2 * c)];
  return pa <= pb && pa <= pc ? a : pb <= pc ? b : c;
}
