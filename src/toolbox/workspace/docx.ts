import { convert, HTML_TO_MARKDOWN } from './convert.js'
import type { Conversion, Converter } from './convert.js'
import { FileFailure } from './failure.js'
import { escapeControls } from './path-text.js'
import { storedZip, unpack, zipEntries, ZipProblem } from './zip.js'

/** The text of a document: its parts of XML, unpacked. Images are not among them. */
const MAX_DOCX_XML_BYTES = 50_000_000

const DOCX_TO_HTML: Converter = {
  packageName: 'mammoth',
  purpose: 'A DOCX document is converted to Markdown',
  // Of an image, only its description.
  source: `
    const module = await load()
    const mammoth = module.default ?? module
    const convertImage = mammoth.images.imgElement(() => ({}))
    const { value } = await mammoth.convertToHtml({ buffer: Buffer.from(bytes) }, { convertImage })
    return value
  `,
}

/**
 * A Word document as Markdown, without its images. Only its parts of XML are unpacked, and no more of them than a fixed number of
 * bytes: the sizes are read from the archive's directory first, and unpacking stops at them.
 * @throws FileFailure `ConversionFailed`, `FileTooLarge`, `UnsupportedContent` or `MissingDependency`; the signal's reason.
 */
export async function docxToMarkdown(bytes: Buffer, conversion: Conversion): Promise<string> {
  const { name = 'document', signal } = conversion
  if (isCompoundFile(bytes)) {
    throw failure('UnsupportedContent', `The ${name} has a password or the format of Word 97, which cannot be read`)
  }
  try {
    const html = await convert(DOCX_TO_HTML, await withoutMedia(bytes, conversion), { name, signal })
    return await convert(HTML_TO_MARKDOWN, Buffer.from(html), { name, signal })
  } catch (error) {
    if (!(error instanceof ZipProblem)) throw error
    throw failure('ConversionFailed', `The ${name} could not be read: ${error.message}`)
  }
}

/** The container of encrypted documents and of those of Word 97 to 2003. */
function isCompoundFile(bytes: Uint8Array): boolean {
  return Buffer.from(bytes.subarray(0, 8)).toString('hex') === 'd0cf11e0a1b11ae1'
}

/** The library gets an archive whose size is known, made of the parts that were unpacked here. */
async function withoutMedia(bytes: Buffer, { name = 'document', signal }: Conversion): Promise<Buffer> {
  const entries = zipEntries(bytes).filter((entry) => /\.(?:xml|rels)$/i.test(entry.name))
  const size = entries.reduce((sum, entry) => sum + entry.size, 0)
  if (size > MAX_DOCX_XML_BYTES) {
    const limit = `more than the ${MAX_DOCX_XML_BYTES} that can be read`
    throw failure('FileTooLarge', `The ${name} unpacks to ${size} bytes of text, ${limit}`)
  }
  const files = new Map<string, Buffer>()
  for (const entry of entries) {
    signal.throwIfAborted()
    files.set(entry.name, await unpack(bytes, entry))
  }
  return storedZip(files)
}

function failure(errorType: string, message: string): FileFailure {
  return new FileFailure(errorType, escapeControls(`${message}.`))
}
