import { convertDocument, HTML_TO_MARKDOWN, PDF_TO_TEXT } from '../workspace/convert-document.js'
import { docxToMarkdown } from '../workspace/docx.js'
import { failedOutcome, FileFailure } from '../workspace/file-failure.js'
import { fileOptionsOf } from '../workspace/file-tool.js'
import { shownPath } from '../workspace/path-text.js'
import { artifactSource, isArtifact } from '../workspace/spill.js'
import type { ContentSource } from '#contracts/entry.js'
import { openFile, withResolved } from '../workspace/safe-open.js'
import type { OpenedFile } from '../workspace/safe-open.js'
import { workspaceOf } from '../workspace/workspace.js'
import type { ToolContext, ToolOutcome } from '#core/tools/tool-spec.js'
import { contentTypeOf, decodeText, contentKind } from '../web/content.js'

const MAX_BYTES = 32_000_000

/** The run's own `read`, if it has one, has the rules for its files. */
type Loading = Pick<ToolContext, 'root' | 'tools' | 'signal'>

/** A file of a workspace, as text. */
export interface LoadedDocument {
  readonly kind: 'loaded'
  /** Its path as the model knows it. */
  readonly path: string
  /** That of a saved output is the source of what was saved. */
  readonly source: ContentSource
  /** Markdown, if it is HTML or DOCX. */
  readonly text: string
}

/** The whole text of a file that `read` may read: a text file, HTML, PDF or DOCX. Problems are failed outcomes. */
export async function loadDocument(
  raw: string,
  { root, tools, signal }: Loading,
): Promise<LoadedDocument | ToolOutcome> {
  const workspace = workspaceOf(fileOptionsOf(tools?.get('read')), root)
  try {
    return await withResolved(
      async () => {
        const path = await workspace.rootPolicy.resolve(raw)
        workspace.readPolicy.requireCovered(path, raw)
        return path
      },
      async (path) => {
        const file = await openFile(workspace, path, shownPath(raw))
        try {
          const shown = workspace.display(path)
          return {
            kind: 'loaded',
            path: shown,
            source: isArtifact(workspace, path) ? { kind: artifactSource(path) } : { kind: 'workspace', name: path },
            text: await documentText(await documentBytes(file, shown), { path, shown, signal }),
          }
        } finally {
          await file.handle.close()
        }
      },
    )
  } catch (error) {
    signal.throwIfAborted()
    return failedOutcome(error, shownPath(raw))
  }
}

async function documentBytes({ handle, stats }: OpenedFile, shown: string): Promise<Buffer> {
  const size = Number(stats.size)
  if (size > MAX_BYTES)
    throw new FileFailure('FileTooLarge', `${shown} has ${size} bytes, more than the ${MAX_BYTES} that can be read`)
  const bytes = Buffer.alloc(size)
  const { bytesRead } = await handle.read(bytes, 0, size, 0)
  return bytes.subarray(0, bytesRead)
}

async function documentText(
  bytes: Buffer,
  { path, shown, signal }: { readonly path: string; readonly shown: string; readonly signal: AbortSignal },
): Promise<string> {
  const type = contentTypeOf(/\.x?html?$/i.test(path) ? 'text/html' : '')
  const name = `document ${shown}`
  switch (contentKind(type, bytes)) {
    case 'html':
      return convertDocument(HTML_TO_MARKDOWN, Buffer.from(decodeText(type, bytes)), { name, signal })
    case 'pdf':
      return convertDocument(PDF_TO_TEXT, bytes, { name, signal })
    case 'docx':
      return docxToMarkdown(bytes, { name, signal })
    case 'text':
      return decodeText(type, bytes)
    case 'binary':
      throw new FileFailure('UnsupportedContent', `${shown} is not text, HTML, PDF or DOCX`)
  }
}
