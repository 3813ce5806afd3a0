import { objectSchema } from '#util/json.js'
import type { ToolSpec, ToolOutcome } from '#core/tools/tool-spec.js'
import { fileTool } from '../workspace/file-tool.js'
import type { FileCall } from '../workspace/file-tool.js'
import { FirstOf } from '#util/first-of.js'
import { withinTime } from '../workspace/call-time.js'
import type { FileToolOptions } from '../workspace/options.js'
import { SearchProgress } from '../workspace/search-progress.js'
import { walk, walkStart } from '../workspace/walk.js'
import type { WalkEntry } from '../workspace/walk.js'

const DEFAULT_RESULTS = 200

interface ListArguments {
  readonly path?: string
  readonly glob?: string
  readonly recursive?: boolean
  readonly max_results?: number
}

/** `list`: the entries of a folder. */
export function listTool(options: FileToolOptions = {}): ToolSpec {
  return fileTool<ListArguments>(options, {
    name: 'list',
    description: 'List a directory, or the entries in it that match a glob. Hidden and ignored entries are left out.',
    instructions: [
      '`list`: use it to see the contents of a folder that you know.',
      '- Filter with `glob`; a name that begins with a dot must be spelled out, such as `.github` or `.*`.',
      '- Set `recursive` only when you need deeper entries.',
    ].join('\n'),
    parameters: objectSchema([], {
      path: { type: 'string', description: 'Directory, relative to the workspace root. Default `.`.' },
      glob: { type: 'string', description: 'Show only entries that match this relative glob. Default: all.' },
      recursive: { type: 'boolean', description: 'Also show the contents of subdirectories. Default false.' },
      max_results: {
        type: 'integer',
        minimum: 1,
        description: `Most entries to return. Default ${DEFAULT_RESULTS}.`,
      },
    }),
    annotations: { readOnly: true, idempotent: true, openWorld: false },
    aliases: { directory: 'path', dir: 'path', pattern: 'glob' },
    pathFields: ['path'],
    run: listFolder,
  })
}

async function listFolder(call: FileCall<ListArguments>): Promise<ToolOutcome> {
  const { workspace, args } = call
  const { path: raw = '.', glob = '', recursive = false, max_results: maxResults = DEFAULT_RESULTS } = args
  if (glob !== '') workspace.readPolicy.checkGlob(glob)
  const { path: start, isFolder } = await walkStart(workspace, raw, { names: true })

  const entries = new FirstOf<Listed>(maxResults, compareListed)
  const pattern = globSelector(glob, recursive && isFolder)
  const progress = new SearchProgress(call)
  await withinTime(call, { label: 'list', advice: LISTING_ADVICE }, async (time) => {
    for await (const { path, kind } of walk(workspace, { start, glob: pattern, names: true, ...time })) {
      const shown = workspace.display(path)
      entries.add({ kind, shown, folded: shown.toLowerCase() })
      progress.add(path)
    }
  })
  return listingOutcome(entries, ({ kind, shown }) => `${kind === 'folder' ? 'dir  ' : 'file '}${shown}`)
}

export const LISTING_ADVICE = 'narrow the path or the pattern'

/** Entries, one a line. */
export function listingOutcome<Entry>(all: FirstOf<Entry>, lineOf: (entry: Entry) => string): ToolOutcome {
  const entries = all.items()
  const omitted = all.total - entries.length
  const lines = entries.map(lineOf)
  if (omitted > 0) lines.push(`... ${omitted} more result(s) omitted`)
  const content = lines.length === 0 ? 'no files' : lines.join('\n')
  return { kind: 'succeeded', content, metadata: { total: all.total, returned: entries.length } }
}

interface Listed {
  readonly kind: WalkEntry['kind']
  readonly shown: string
  readonly folded: string
}

function globSelector(glob: string, recursive: boolean): string {
  if (!recursive) return glob === '' ? '*' : glob
  return glob === '' ? '**' : `**/${glob}`
}

/** Directories first, then by name, ignoring case. */
function compareListed(left: Listed, right: Listed): number {
  if (left.kind !== right.kind) return left.kind === 'folder' ? -1 : 1
  if (left.folded !== right.folded) return left.folded < right.folded ? -1 : 1
  return left.shown < right.shown ? -1 : 1
}
