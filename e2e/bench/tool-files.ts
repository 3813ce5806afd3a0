// The files for the benchmark of the tools, written to a temporary folder. The same numbers give the same files.
import { createWriteStream } from 'node:fs'
import { mkdir, writeFile } from 'node:fs/promises'
import { once } from 'node:events'
import { join } from 'node:path'

const WORDS = 'order customer late refund invoice parcel street number value update create delete retry queue'.split(
  ' ',
)
const FILES_A_FOLDER = 100

/** Numbers that look random and are the same each time. */
function numbersFrom(seed: number): () => number {
  let state = seed
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    return state / 2 ** 32
  }
}

function textOf(next: () => number, lines: number): string {
  let text = ''
  for (let line = 0; line < lines; line++) {
    for (let word = 0; word < 8; word++) text += `${WORDS[Math.floor(next() * WORDS.length)]} `
    text += `${Math.floor(next() * 1e9)}\n`
  }
  return text
}

/** A tree of `count` small text files in folders of a hundred, ten folders wide; one file in a thousand has a `needle`. */
export async function writeTree(root: string, count: number): Promise<void> {
  const next = numbersFrom(1)
  for (let first = 0, folder = 0; first < count; first += FILES_A_FOLDER, folder++) {
    const path = join(root, `part-${folder % 10}`, `group-${Math.floor(folder / 10) % 10}`, `folder-${folder}`)
    await mkdir(path, { recursive: true })
    const names = Array.from({ length: Math.min(FILES_A_FOLDER, count - first) }, (_, index) => first + index)
    await Promise.all(
      names.map((name) => {
        const needle = name % 1000 === 500 ? 'the needle is here\n' : ''
        return writeFile(join(path, `file-${name}.${name % 5 === 0 ? 'md' : 'txt'}`), textOf(next, 12) + needle)
      }),
    )
  }
  await writeFile(join(root, '.gitignore'), '*.log\n')
}

/** A file of rows of about 400 bytes, `bytes` long. */
export async function writeRows(file: string, bytes: number): Promise<void> {
  const next = numbersFrom(2)
  const stream = createWriteStream(file)
  let written = 0
  for (let id = 0; written < bytes;) {
    let piece = ''
    while (piece.length < 1 << 20 && written + piece.length < bytes) {
      const row = {
        id: id++,
        status: next() < 0.01 ? 'late' : 'shipped',
        total: Math.round(next() * 100_000) / 100,
        customer: { name: `customer ${Math.floor(next() * 5000)}`, country: WORDS[Math.floor(next() * 5)] },
        note: textOf(next, 4),
      }
      piece += `${JSON.stringify(row)}\n`
    }
    written += piece.length
    if (!stream.write(piece)) await once(stream, 'drain')
  }
  stream.end()
  await once(stream, 'finish')
}
