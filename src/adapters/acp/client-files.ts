import { realpath } from 'node:fs/promises'
import { join, relative } from 'node:path'
import type { AgentContext, ClientCapabilities } from '@agentclientprotocol/sdk'
import type { Extension } from '#core/extension/extension.js'
import { isObject } from '#util/json.js'
import { withTextFiles } from '#util/platform/text-files.js'
import type { TextFiles } from '#util/platform/text-files.js'

/** The protocol's code for a file that the editor does not have. */
const NOT_FOUND = -32002

export interface FilesSetup {
  readonly sessionId: string
  /** The folder of the session, as the editor named it. */
  readonly root: string
  readonly client: AgentContext
  readonly capabilities: ClientCapabilities
  /** False: the editor is gone, and a run that goes on without it works on the disk. */
  readonly isConnected: () => boolean
}

/**
 * The file tools of a session's runs, and of their child runs, read and write text through the editor, as far as it has said that it
 * can. Their own checks come first: a path outside the root never reaches the editor. Null if the editor can do neither.
 */
export async function editorsFiles(setup: FilesSetup): Promise<Extension | null> {
  const { readTextFile = false, writeTextFile = false } = setup.capabilities.fs ?? {}
  if (!readTextFile && !writeTextFile) return null
  const root = await realpath(setup.root).catch(() => setup.root)
  /** The tools resolve links; the editor knows its own name of the folder. */
  const editorPath = (path: string): string => join(setup.root, relative(root, path))
  const files: TextFiles = {
    root,
    ...(readTextFile && { read: (path, signal) => readEditorFile(setup, editorPath(path), signal) }),
    ...(writeTextFile && {
      write: (path, text, signal) => writeEditorFile(setup, { path: editorPath(path), text }, signal),
    }),
  }
  return {
    name: 'files of the editor',
    wrapToolCall: (_call, next) => withTextFiles(setup.isConnected() ? files : null, next),
  }
}

async function readEditorFile(
  { client, sessionId }: FilesSetup,
  path: string,
  signal: AbortSignal,
): Promise<string | null> {
  try {
    const { content } = await client.request('fs/read_text_file', { sessionId, path }, cancellableBy(signal))
    return content
  } catch (error) {
    if (isObject(error) && error['code'] === NOT_FOUND) return null
    throw error
  }
}

async function writeEditorFile(
  { client, sessionId }: FilesSetup,
  { path, text }: { readonly path: string; readonly text: string },
  signal: AbortSignal,
): Promise<void> {
  await client.request('fs/write_text_file', { sessionId, path, content: text }, cancellableBy(signal))
}

function cancellableBy(signal: AbortSignal) {
  return { cancellationSignal: signal, stopWaitingOnCancel: true }
}
