import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { callTool } from '#harness/call-tool.js'
import type { CallToolOptions } from '#harness/try-tool.js'
import type { Envelope } from '#core/tools/boundary/envelope.js'
import type { ToolSpec } from '#core/tools/tool-spec.js'
import type { FileToolOptions } from '#toolbox/workspace/options.js'
import { workspaceOf } from '#toolbox/workspace/workspace.js'
import type { Workspace } from '#toolbox/workspace/workspace.js'
import type { JsonObject } from '#util/json.js'
import { temporaryFolder } from '../support/folder.js'

/** A fresh folder with files, removed when the test ends. What climbs out of it by a step or two does no harm. */
export async function folderWith(files: Readonly<Record<string, string | Uint8Array>> = {}): Promise<string> {
  const base = temporaryFolder()
  const folder = join(base, 'around', 'root')
  await mkdir(folder, { recursive: true })
  for (const [path, content] of Object.entries(files)) {
    await mkdir(dirname(join(folder, path)), { recursive: true })
    await writeFile(join(folder, path), content)
  }
  return folder
}

export function workspaceIn(root: string, options: Omit<FileToolOptions, 'root'> = {}): Workspace {
  return workspaceOf({ ...options, root }, root)
}

/** Calls a tool as a model would, and reads its envelope. */
export async function call(spec: ToolSpec, args: JsonObject, context: CallToolOptions = {}): Promise<Envelope> {
  return callTool(spec, args, context)
}

export async function textOf(...path: readonly string[]): Promise<string> {
  return readFile(join(...path), 'utf8')
}
