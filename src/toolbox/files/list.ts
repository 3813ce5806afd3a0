import type { ToolOutcome } from '../../tools/outcome.js'
import type { ToolSpec } from '../../tools/spec.js'
import { fileTool } from '../workspace/file-tool.js'
import type { FileCall } from '../workspace/file-tool.js'
import { FirstOf } from '../../util/first-of.js'
import { FoundSoFar } from '../workspace/found-so-far.js'
import type { FileToolOptions } from '../workspace/options.js'
import { scopeAt } from '../workspace/scope.js'
import { walk } from '../workspace/walk.js'
import type { WalkEntry } from '../workspace/walk.js'
import { withinTime } from '../workspace/within-time.js'

const DEFAULT_RESULTS = 200

interface ListArguments {
  readonly path?: string
  readonly glob?: string
  readonly recursive?: boolean
  readonly max_results?: number
}

/** `list`: what is in a folder. */
export function listTool(options: FileToolOptions = {}): ToolSpec {
  return fileTool<ListArguments>(options, {
    name: 'list',
    description: 'List a directory, or what matches a glob in it. Hidden and ignored entries are left out.',
    instructions: [
      '`list`: use it to look into a folder that you know.',
      '- Filter with `glob`; a name that begins with a dot must be spelled out, such as `.github` or `.*`.',
      '- Set `recursive` only when you need what lies deeper.',
    ].join('\n'),
    parameters: {
      type: 'object',
      properties: {
        path: { type: 'string', description: 'Directory, relative to the workspace root. Default `.`.' },
        glob: { type: 'string', description: 'Show only what matches this relative glob. Default: everything.' },
        recursive: { type: 'boolean', description: 'Also show what lies in subdirectories. Default false.' },
        max_results: {
          type: 'integer',
          minimum: 1,
          description: `Most entries to return. Default ${DEFAULT_RESULTS}.`,
        },
      },
      additionalProperties: false,
    },
    annotations: { readOnly: true, idempotent: true, openWorld: false },
    aliases: { directory: 'path', dir: 'path', pattern: 'glob' },
    pathFields: ['path'],
    run: listFolder,
  })
}

async function listFolder(call: FileCall<ListArguments>): Promise<ToolOutcome> {
  const { workspace, args, context } = call
  const { path: raw = '.', glob = '', recursive = false, max_results: maxResults = DEFAULT_RESULTS } = args
  if (glob !== '') workspace.readPolicy.checkGlob(glob)
  const { path: start, isFolder } = await scopeAt(workspace, raw)

  const found = new FirstOf<Listed>(maxResults, compare)
  const pattern = selector(glob, recursive && isFolder)
  const soFar = new FoundSoFar(workspace, context)
  await withinTime('list', call, async ({ signal, deadline }) => {
    for await (const { path, kind } of walk(workspace, { start, glob: pattern, signal, deadline })) {
      const shown = workspace.display(path)
      found.add({ kind, shown, folded: shown.toLowerCase() })
      soFar.add(path)
    }
  })
  const entries = found.items()
  const omitted = found.total - entries.length
  const lines = entries.map(({ kind, shown }) => `${kind === 'folder' ? 'dir  ' : 'file '}${shown}`)
  if (omitted > 0) lines.push(`... ${omitted} more result(s) omitted`)
  const content = lines.length === 0 ? 'no files' : lines.join('\n')
  return { kind: 'succeeded', content, metadata: { total: found.total, returned: entries.length } }
}

interface Listed {
  readonly kind: WalkEntry['kind']
  readonly shown: string
  readonly folded: string
}

function selector(glob: string, recursive: boolean): string {
  if (!recursive) return glob === '' ? '*' : glob
  return glob === '' ? '**' : `**/${glob}`
}

/** Directories first, then by name whatever the case. */
function compare(left: Listed, right: Listed): number {
  if (left.kind !== right.kind) return left.kind === 'folder' ? -1 : 1
  if (left.folded !== right.folded) return left.folded < right.folded ? -1 : 1
  return left.shown < right.shown ? -1 : 1
}
