import { promisify } from 'node:util'
import { inflateRaw } from 'node:zlib'

/** A file of an archive, as the directory at the end of the archive declares it. */
export interface ZipEntry {
  readonly name: string
  /** Bytes after unpacking. The actual content may differ: `unpack` checks it. */
  readonly size: number
  readonly packedSize: number
  readonly method: number
  readonly encrypted: boolean
  readonly offset: number
}

/** An archive that cannot be read, with the reason as a message. */
export class ZipProblem extends Error {
  override readonly name = 'ZipProblem'
}

const END_SIGNATURE = 0x06054b50
const END_BYTES = 22
const ENTRY_SIGNATURE = 0x02014b50
const ENTRY_BYTES = 46
const FILE_SIGNATURE = 0x04034b50
const FILE_BYTES = 30
const MAX_COMMENT_BYTES = 0xffff
const STORED = 0
const DEFLATED = 8
const UTF8_NAMES = 0x0800

const inflate = promisify(inflateRaw)

/**
 * The files of an archive, by its directory. Nothing is unpacked.
 * @throws ZipProblem
 */
export function zipEntries(bytes: Buffer): readonly ZipEntry[] {
  const end = endOf(bytes)
  const count = bytes.readUInt16LE(end + 10)
  const entries: ZipEntry[] = []
  let at = bytes.readUInt32LE(end + 16)
  for (let index = 0; index < count; index++) {
    if (at + ENTRY_BYTES > end || bytes.readUInt32LE(at) !== ENTRY_SIGNATURE) throw damaged('its directory is cut off')
    const nameEnd = at + ENTRY_BYTES + bytes.readUInt16LE(at + 28)
    entries.push({
      name: bytes.toString('utf8', at + ENTRY_BYTES, nameEnd),
      size: bytes.readUInt32LE(at + 24),
      packedSize: bytes.readUInt32LE(at + 20),
      method: bytes.readUInt16LE(at + 10),
      encrypted: (bytes.readUInt16LE(at + 8) & 1) === 1,
      offset: bytes.readUInt32LE(at + 42),
    })
    at = nameEnd + bytes.readUInt16LE(at + 30) + bytes.readUInt16LE(at + 32)
  }
  return entries
}

/**
 * The content of a file of an archive. Unpacking stops at the declared size, so the sum of the declared sizes is a limit of memory.
 * @throws ZipProblem
 */
export async function unpack(bytes: Buffer, entry: ZipEntry): Promise<Buffer> {
  const { name, size, packedSize, method, offset } = entry
  if (entry.encrypted) throw new ZipProblem('it is encrypted')
  if (offset + FILE_BYTES > bytes.length || bytes.readUInt32LE(offset) !== FILE_SIGNATURE) {
    throw damaged(`\`${name}\` is not at its place`)
  }
  const start = offset + FILE_BYTES + bytes.readUInt16LE(offset + 26) + bytes.readUInt16LE(offset + 28)
  const packed = bytes.subarray(start, start + packedSize)
  const content = await contentOf(packed, { name, method, size })
  if (content.length !== size) throw damaged(`\`${name}\` has another size than declared`)
  return content
}

async function contentOf(
  packed: Buffer,
  { name, method, size }: Pick<ZipEntry, 'name' | 'method' | 'size'>,
): Promise<Buffer> {
  if (method === STORED) return packed
  if (method !== DEFLATED) throw new ZipProblem(`\`${name}\` is packed by a method that is not supported (${method})`)
  try {
    // One more byte than declared shows that there are more.
    return await inflate(packed, { maxOutputLength: size + 1 })
  } catch {
    throw damaged(`\`${name}\` cannot be unpacked to its declared size`)
  }
}

/** An archive of these files, not compressed. */
export function storedZip(files: ReadonlyMap<string, Buffer>): Buffer {
  const parts: Buffer[] = []
  const directory: Buffer[] = []
  let offset = 0
  for (const [name, content] of files) {
    const nameBytes = Buffer.from(name)
    const header = fileHeader(nameBytes.length, content.length)
    directory.push(directoryEntry(header, offset), nameBytes)
    parts.push(header, nameBytes, content)
    offset += header.length + nameBytes.length + content.length
  }
  const size = directory.reduce((sum, each) => sum + each.length, 0)
  return Buffer.concat([...parts, ...directory, endRecord({ count: files.size, size, offset })])
}

/** Without a checksum: readers of a stored file do not need one. */
function fileHeader(nameBytes: number, contentBytes: number): Buffer {
  const header = Buffer.alloc(FILE_BYTES)
  header.writeUInt32LE(FILE_SIGNATURE, 0)
  header.writeUInt16LE(20, 4)
  header.writeUInt16LE(UTF8_NAMES, 6)
  header.writeUInt32LE(contentBytes, 18)
  header.writeUInt32LE(contentBytes, 22)
  header.writeUInt16LE(nameBytes, 26)
  return header
}

/** The fields of a file's header, and its place. */
function directoryEntry(header: Buffer, offset: number): Buffer {
  const entry = Buffer.alloc(ENTRY_BYTES)
  entry.writeUInt32LE(ENTRY_SIGNATURE, 0)
  entry.writeUInt16LE(20, 4)
  header.copy(entry, 6, 4, FILE_BYTES)
  entry.writeUInt32LE(offset, 42)
  return entry
}

function endRecord({ count, size, offset }: Record<'count' | 'size' | 'offset', number>): Buffer {
  const end = Buffer.alloc(END_BYTES)
  end.writeUInt32LE(END_SIGNATURE, 0)
  end.writeUInt16LE(count, 8)
  end.writeUInt16LE(count, 10)
  end.writeUInt32LE(size, 12)
  end.writeUInt32LE(offset, 16)
  return end
}

function endOf(bytes: Buffer): number {
  const last = bytes.length - END_BYTES
  for (let at = last; at >= Math.max(0, last - MAX_COMMENT_BYTES); at--) {
    if (bytes.readUInt32LE(at) === END_SIGNATURE) return at
  }
  throw damaged('it is cut off, or no archive')
}

function damaged(reason: string): ZipProblem {
  return new ZipProblem(`it is damaged (${reason})`)
}
