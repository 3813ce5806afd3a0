import type { ToolOutcome } from '../../tools/outcome.js'
import type { ToolSpec } from '../../tools/spec.js'
import { hasLoneSurrogate } from '../../util/characters.js'
import { FileFailure, invalidInput } from '../workspace/failure.js'
import { fileTool } from '../workspace/file-tool.js'
import type { FileCall } from '../workspace/file-tool.js'
import type { FileToolOptions } from '../workspace/options.js'
import { shownPath } from '../workspace/path-text.js'
import { appendToFile, replaceFile, withTarget, writableStats } from '../workspace/replace-file.js'
import type { Target } from '../workspace/replace-file.js'
import { withResolved } from '../workspace/safe-open.js'

interface WriteArguments {
  readonly path: string
  readonly content: string
  readonly append?: boolean
}

/** `write`: creates, overwrites or appends to a file. */
export function writeTool(options: FileToolOptions = {}): ToolSpec {
  return fileTool<WriteArguments>(options, {
    name: 'write',
    description: 'Create, overwrite or append to a UTF-8 text file under the workspace root.',
    instructions: [
      '`write`: use it for whole files or to append; prefer `edit` to change parts of a file.',
      '- Pass `path` and the complete `content` at the top level. Missing folders are created.',
    ].join('\n'),
    parameters: {
      type: 'object',
      properties: {
        path: { type: 'string', description: 'File to write, relative to the workspace root.' },
        content: { type: 'string', description: 'The complete text of the file, or the text to append.' },
        append: { type: 'boolean', description: 'Add to the end of the file instead of replacing it. Default false.' },
      },
      required: ['path', 'content'],
      additionalProperties: false,
    },
    annotations: { readOnly: false, destructive: true, idempotent: false, openWorld: false },
    sequential: true,
    aliases: { file: 'path', filename: 'path' },
    pathFields: ['path'],
    run: writeFile,
  })
}

async function writeFile({ workspace, args, context }: FileCall<WriteArguments>): Promise<ToolOutcome> {
  const { content, append = false } = args
  const shown = shownPath(args.path)
  if (hasLoneSurrogate(content)) {
    throw invalidInput('`content` has half of a surrogate pair, which cannot be encoded in UTF-8.')
  }
  const bytes = Buffer.from(content)
  const resolve = async (): Promise<string> => {
    const path = await workspace.writePolicy.resolve(args.path)
    if (/[\\/]$/.test(args.path)) throw new FileFailure('PathTypeError', `path is a directory: ${shown}`)
    return path
  }
  return withResolved(resolve, async (path) => {
    await withTarget(workspace, { path, shown, signal: context.signal, create: true }, (target) =>
      append ? appendToFile(target, bytes) : overwrite(target, bytes),
    )
    const text = `${append ? 'appended' : 'wrote'} ${bytes.length} bytes to ${workspace.display(path)}`
    return { kind: 'succeeded', content: text, metadata: { path } }
  })
}

async function overwrite(target: Target, bytes: Buffer): Promise<void> {
  const old = await writableStats(target)
  await replaceFile(target, old, { write: (file) => file.writeFile(bytes) })
}
