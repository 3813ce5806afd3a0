import { convertDocument, HTML_TO_MARKDOWN } from './convert-document.js'
import type { Conversion, Converter } from './convert-document.js'
import { FileFailure } from './file-failure.js'
import { escapeControls } from './path-text.js'

/** The text of a document: its parts of XML, unpacked. Images are not among them. */
const MAX_DOCX_XML_BYTES = 50_000_000

/** The document without its media, as an archive that is not compressed, a character for each byte. */
const DOCX_TO_XML_PARTS: Converter = {
  packageName: 'fflate',
  purpose: 'A DOCX document is unpacked',
  // Unpacked piece by piece, so that it can be stopped at the limit, whatever sizes the archive declares.
  source: `
    const module = await load()
    const { Unzip, UnzipInflate, zipSync } = module.default ?? module
    const TOO_LARGE = 'it unpacks to more than the ${MAX_DOCX_XML_BYTES} bytes of text that can be read'
    const parts = {}
    let size = 0
    const unzip = new Unzip((file) => {
      if (!/\\.(?:xml|rels)$/i.test(file.name)) return
      const chunks = []
      file.ondata = (error, chunk, isLast) => {
        if (error) throw error
        size += chunk.length
        if (size > ${MAX_DOCX_XML_BYTES}) throw Object.assign(new Error(TOO_LARGE), { errorType: 'FileTooLarge' })
        chunks.push(chunk)
        if (isLast) parts[file.name] = Buffer.concat(chunks)
      }
      file.start()
    })
    unzip.register(UnzipInflate)
    const PIECE = 16384
    for (let at = 0; at < bytes.length; at += PIECE) unzip.push(bytes.subarray(at, at + PIECE), at + PIECE >= bytes.length)
    if (Object.keys(parts).length === 0) throw new Error('it is damaged, or no archive')
    return Buffer.from(zipSync(parts, { level: 0 })).toString('latin1')
  `,
}

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
 * bytes.
 * @throws FileFailure `ConversionFailed`, `FileTooLarge`, `UnsupportedContent` or `MissingDependency`; the signal's reason.
 */
export async function docxToMarkdown(bytes: Buffer, { name = 'document', ...more }: Conversion): Promise<string> {
  if (isCompoundFile(bytes)) {
    const problem = `The ${name} has a password or the format of Word 97, which cannot be read.`
    throw new FileFailure('UnsupportedContent', escapeControls(problem))
  }
  const parts = await convertDocument(DOCX_TO_XML_PARTS, bytes, { ...more, name })
  const html = await convertDocument(DOCX_TO_HTML, Buffer.from(parts, 'latin1'), { ...more, name })
  return convertDocument(HTML_TO_MARKDOWN, Buffer.from(html), { ...more, name })
}

/** The container of encrypted documents and of those of Word 97 to 2003. */
function isCompoundFile(bytes: Uint8Array): boolean {
  return Buffer.from(bytes.subarray(0, 8)).toString('hex') === 'd0cf11e0a1b11ae1'
}
