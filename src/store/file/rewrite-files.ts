import { parseJson } from '#util/json.js'
import type { LogRef } from '#core/log/ref.js'
import type { FileLease } from './file-lease.js'
import { FileInbox } from './file-inbox.js'
import { unlessDamaged } from '../fold-run.js'
import { replaceText } from './file-paths.js'
import type { LogPaths } from './file-paths.js'
import type { StoreCodec } from '../codec/store-codec.js'
import { digestText, fileDigest, renewedLine } from './encoded-lines.js'
import { existsSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

interface RewrittenLog {
  readonly ref: LogRef
  readonly codec: StoreCodec
  readonly lease: FileLease
}

/**
 * Writes the files of a log anew in the form of the current codec, under a lease, which it releases. False if they were in it; null
 * if a record cannot be read.
 */
export async function rewriteFiles(paths: LogPaths, rewritten: RewrittenLog): Promise<boolean | null> {
  try {
    return await unlessDamaged(rewriteUnderLease(paths, rewritten), () => null)
  } finally {
    rewritten.lease.release()
  }
}

async function rewriteUnderLease(
  { log, digest, inbox, lease: folder }: LogPaths,
  { ref, codec, lease }: RewrittenLog,
): Promise<boolean> {
  let isChanged = false
  const text = storedFile(log)
  const lines = renewedLines(text, ref, codec)
  if (lines !== text) {
    // The next claim removes it, if this process ends here.
    const written = join(folder, `log-${globalThis.crypto.randomUUID()}`)
    writeFileSync(written, lines, { mode: 0o600, flush: true })
    if (!lease.stands) return false
    renameSync(written, log)
    isChanged = true
  }
  const digestBefore = storedFile(digest)
  const digestNow = renewedDigest(digestBefore, ref, codec)
  if (digestNow !== digestBefore) replaceText(digest, digestNow)
  return (await new FileInbox(inbox, ref, codec).rewrite(codec)) || isChanged || digestNow !== digestBefore
}

function storedFile(path: string): string {
  return existsSync(path) ? readFileSync(path, 'utf8') : ''
}

/** A torn last line is left out. */
function renewedLines(text: string, ref: LogRef, codec: StoreCodec): string {
  const lines = text.split('\n')
  const last = lines.pop() ?? ''
  const whole = last !== '' && parseJson(last).ok ? [...lines, last] : lines
  return whole.map((line) => `${renewedLine(codec, ref, line)}\n`).join('')
}

function renewedDigest(text: string, ref: LogRef, codec: StoreCodec): string {
  const { value } = parseJson(text) as { value?: { readonly lastSeq: number; readonly sealed?: string } }
  if (value === undefined || codec.isCurrent(value.sealed ?? '{}')) return text
  const digest = fileDigest(codec, { ref, lastSeq: value.lastSeq }, text)
  return digest === null ? text : digestText(codec, { ref, lastSeq: value.lastSeq, digest })
}
