import { messageOf } from '#contracts/errors.js'
import { textFiles } from '#util/platform/text-files.js'
import { FileFailure } from '../workspace/file-failure.js'
import { escapeControls } from '../workspace/path-text.js'
import { isInside } from '../workspace/path-policy.js'
import type { Workspace } from '../workspace/workspace.js'

/** Absolute and allowed, and as the model knows it. */
export interface TextPlace {
  readonly path: string
  readonly shown: string
  readonly signal: AbortSignal
}

/** What an editor does with the text files of a workspace, in place of the disk. */
export interface EditorFiles {
  /** Absent: the disk does it. `undefined`: the editor has no such file. */
  readonly read?: ((place: TextPlace) => Promise<string | undefined>) | undefined
  /** Absent: the disk does it. */
  readonly write?: ((place: TextPlace, text: string) => Promise<void>) | undefined
}

/** An editor that takes the files that are written. */
export interface WritingEditor extends EditorFiles {
  readonly write: NonNullable<EditorFiles['write']>
}

/** Its failures are `EditorFailed`: the disk does not answer in its place. */
export function editorFilesOf({ root }: Workspace): EditorFiles {
  const files = textFiles()
  if (files === null || (root !== files.root && !isInside(files.root, root))) return {}
  const { read, write } = files
  return {
    ...(read !== undefined && {
      read: async (place) => (await askEditor(place, 'read', read(place.path, place.signal))) ?? undefined,
    }),
    ...(write !== undefined && {
      write: async (place, text) => askEditor(place, 'write', write(place.path, text, place.signal)),
    }),
  }
}

async function askEditor<T>({ shown, signal }: TextPlace, verb: 'read' | 'write', answer: Promise<T>): Promise<T> {
  try {
    return await answer
  } catch (error) {
    signal.throwIfAborted()
    const problem = `the editor could not ${verb} ${shown}: ${messageOf(error)}`
    throw new FileFailure('EditorFailed', escapeControls(problem))
  }
}
