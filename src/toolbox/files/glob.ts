import { objectSchema } from '#util/json.js'
import { lstat } from 'node:fs/promises'
import type { ToolOutcome, ToolSpec } from '#core/tools/tool-spec.js'
import { FileFailure, isSystemError } from '../workspace/file-failure.js'
import { fileTool } from '../workspace/file-tool.js'
import type { FileCall } from '../workspace/file-tool.js'
import { FirstOf } from '#util/first-of.js'
import type { FileToolOptions } from '../workspace/options.js'
import { shownPath } from '../workspace/path-text.js'
import { withinTime } from '../workspace/call-time.js'
import type { CallTime } from '../workspace/call-time.js'
import { SearchProgress } from '../workspace/search-progress.js'
import { walk, walkStart } from '../workspace/walk.js'
import type { WalkEntry } from '../workspace/walk.js'
import { listingOutcome, LISTING_ADVICE } from './list.js'

const DEFAULT_RESULTS = 200
/** Entries whose time is read at once. */
const BATCH = 64

interface GlobArguments {
  readonly pattern: string
  readonly path?: string
  readonly include_dirs?: boolean
  readonly max_results?: number
}

/** `glob`: files by pattern, the newest first. */
export function globTool(options: FileToolOptions = {}): ToolSpec {
  return fileTool<GlobArguments>(options, {
    name: 'glob',
    description: 'Find files by glob pattern, the newest first. Hidden and ignored entries are left out.',
    instructions: [
      '`glob`: use it to find files by name before you read them, such as `**/*.md`; `*` stays within one folder.',
      '- A name that begins with a dot must be spelled out, such as `.github/**`.',
      '- Set `include_dirs` only when directories matter.',
    ].join('\n'),
    parameters: objectSchema(['pattern'], {
      pattern: { type: 'string', minLength: 1, description: 'Relative glob; `**` stands for any directories.' },
      path: { type: 'string', description: 'Directory to start from, relative to the workspace root. Default `.`.' },
      include_dirs: { type: 'boolean', description: 'Also return directories. Default false.' },
      max_results: { type: 'integer', minimum: 1, description: `Most paths to return. Default ${DEFAULT_RESULTS}.` },
    }),
    annotations: { readOnly: true, idempotent: true, openWorld: false },
    aliases: { glob: 'pattern', directory: 'path', dir: 'path' },
    pathFields: ['path'],
    run: findFiles,
  })
}

async function findFiles(call: FileCall<GlobArguments>): Promise<ToolOutcome> {
  const { workspace, args } = call
  workspace.readPolicy.checkGlob(args.pattern)
  const { path: raw = '.' } = args
  const { path: start, isFolder } = await walkStart(workspace, raw, { names: true })
  if (!isFolder) throw new FileFailure('PathTypeError', `path is not a directory: ${shownPath(raw)}`)

  const entries = await withinTime(call, { label: 'glob', advice: LISTING_ADVICE }, (time) =>
    newestEntries(start, call, time),
  )
  return listingOutcome(entries, ({ path, kind }) => workspace.display(path) + (kind === 'folder' ? '/' : ''))
}

/** The newest matches below a folder. */
async function newestEntries(
  start: string,
  call: FileCall<GlobArguments>,
  time: CallTime,
): Promise<FirstOf<DatedEntry>> {
  const { workspace, args } = call
  const { pattern, include_dirs: includeFolders = false, max_results: maxResults = DEFAULT_RESULTS } = args
  const entries = new FirstOf<DatedEntry>(maxResults, compareByDate)
  const progress = new SearchProgress(call)
  let batch: WalkEntry[] = []
  const addBatch = async (): Promise<void> => {
    for (const entry of await Promise.all(batch.map(datedEntry))) if (entry !== undefined) entries.add(entry)
    batch = []
  }
  for await (const entry of walk(workspace, { start, glob: pattern, names: true, ...time })) {
    if (entry.kind === 'folder' && !includeFolders) continue
    progress.add(entry.path)
    batch.push(entry)
    if (batch.length === BATCH) await addBatch()
  }
  await addBatch()
  return entries
}

interface DatedEntry {
  readonly path: string
  readonly kind: WalkEntry['kind']
  readonly changedNs: bigint
}

/** `undefined` for an entry that no longer exists. */
async function datedEntry({ path, kind, target }: WalkEntry): Promise<DatedEntry | undefined> {
  try {
    return { path, kind, changedNs: (await lstat(target, { bigint: true })).mtimeNs }
  } catch (error) {
    if (isSystemError(error)) return undefined
    throw error
  }
}

function compareByDate(left: DatedEntry, right: DatedEntry): number {
  if (left.changedNs !== right.changedNs) return left.changedNs > right.changedNs ? -1 : 1
  return left.path < right.path ? -1 : 1
}
