import { deflateRawSync } from 'node:zlib'

export interface Packed {
  readonly content: string | Uint8Array
  /** Size in the directory. Default: the real one. */
  readonly declaredSize?: number
  /** Default: 8, deflated. */
  readonly method?: number
}

const W = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'
const R = 'xmlns:r="http://schemas.openxmlformats.org/officeDocument/2006/relationships"'
const TYPE = 'http://schemas.openxmlformats.org/officeDocument/2006/relationships'

export const CONTENT_TYPES =
  '<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types"><Default Extension="png" ContentType="image/png"/>' +
  '<Override PartName="/word/document.xml" ContentType="application/vnd.openxmlformats-officedocument.wordprocessingml.document.main+xml"/></Types>'

export const PACKAGE_LINKS = relationships([['officeDocument', 'word/document.xml']])

/** A document with this body, by the parts that Word writes. */
export function docxOf(body: string, more: Readonly<Record<string, Packed>> = {}): Buffer {
  return zipOf({
    '[Content_Types].xml': { content: CONTENT_TYPES },
    '_rels/.rels': { content: PACKAGE_LINKS },
    'word/document.xml': { content: documentOf(body) },
    'word/styles.xml': {
      content: `<w:styles ${W}><w:style w:type="paragraph" w:styleId="T1"><w:name w:val="heading 1"/></w:style></w:styles>`,
    },
    'word/_rels/document.xml.rels': {
      content: relationships([
        ['styles', 'styles.xml'],
        ['image', 'media/image1.png'],
        ['hyperlink', 'https://example.test/tea', 'External'],
        ['hyperlink', 'javascript:alert(1)', 'External'],
      ]),
    },
    ...more,
  })
}

function documentOf(body: string): string {
  return `<?xml version="1.0" encoding="UTF-8"?><w:document ${W} ${R}><w:body>${body}</w:body></w:document>`
}

export function paragraph(text: string, style?: string): string {
  return `<w:p>${style === undefined ? '' : `<w:pPr><w:pStyle w:val="${style}"/></w:pPr>`}${run(text)}</w:p>`
}

/** `link` is a relationship of the document: `rId3` is an address, `rId4` a script. */
export function linked(text: string, link: string): string {
  return `<w:p><w:hyperlink r:id="${link}">${run(text)}</w:hyperlink></w:p>`
}

/** The first image of the document. */
export function picture(description: string): string {
  const drawing = 'http://schemas.openxmlformats.org/drawingml/2006'
  return (
    `<w:p><w:r><w:drawing><wp:inline xmlns:wp="${drawing}/wordprocessingDrawing"><wp:docPr id="1" name="p" descr="${description}"/>` +
    `<a:graphic xmlns:a="${drawing}/main"><a:graphicData><pic:pic xmlns:pic="${drawing}/picture"><pic:blipFill>` +
    `<a:blip r:embed="rId2"/></pic:blipFill></pic:pic></a:graphicData></a:graphic></wp:inline></w:drawing></w:r></w:p>`
  )
}

export function table(rows: readonly (readonly string[])[]): string {
  const cells = (row: readonly string[]): string => row.map((cell) => `<w:tc>${paragraph(cell)}</w:tc>`).join('')
  return `<w:tbl>${rows.map((row) => `<w:tr>${cells(row)}</w:tr>`).join('')}</w:tbl>`
}

function run(text: string): string {
  return `<w:r><w:t>${text}</w:t></w:r>`
}

function relationships(links: readonly (readonly [string, string, string?])[]): string {
  const each = links.map(
    ([type, target, mode], index) =>
      `<Relationship Id="rId${index + 1}" Type="${TYPE}/${type}" Target="${target}"${mode === undefined ? '' : ` TargetMode="${mode}"`}/>`,
  )
  return `<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships">${each.join('')}</Relationships>`
}

/** An archive, also one that lies about its content. */
export function zipOf(files: Readonly<Record<string, Packed>>): Buffer {
  const parts: Buffer[] = []
  const directory: Buffer[] = []
  let offset = 0
  for (const [name, { content, declaredSize, method = 8 }] of Object.entries(files)) {
    const packed = method === 8 ? deflateRawSync(content) : Buffer.from(content)
    const fields = Buffer.alloc(26)
    fields.writeUInt16LE(20, 0)
    fields.writeUInt16LE(method, 4)
    fields.writeUInt32LE(packed.length, 14)
    fields.writeUInt32LE(declaredSize ?? Buffer.byteLength(content), 18)
    fields.writeUInt16LE(name.length, 22)
    const at = Buffer.alloc(14)
    at.writeUInt32LE(offset, 10)
    directory.push(Buffer.from('PK\u0001\u0002\u0014\0', 'latin1'), fields, at, Buffer.from(name))
    const file = Buffer.concat([Buffer.from('PK\u0003\u0004', 'latin1'), fields, Buffer.from(name), packed])
    parts.push(file)
    offset += file.length
  }
  const entries = Buffer.concat(directory)
  const end = Buffer.alloc(22)
  end.write('PK\u0005\u0006', 'latin1')
  end.writeUInt16LE(Object.keys(files).length, 8)
  end.writeUInt16LE(Object.keys(files).length, 10)
  end.writeUInt32LE(entries.length, 12)
  end.writeUInt32LE(offset, 16)
  return Buffer.concat([...parts, entries, end])
}
