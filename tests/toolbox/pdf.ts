import { constants, createDeflate, deflateSync } from 'node:zlib'

/** A PDF with one line on each page. */
export function pdfOf(lines: readonly string[]): string {
  const kids = lines.map((_, index) => `${4 + index * 2} 0 R`).join(' ')
  const objects = [
    '<< /Type /Catalog /Pages 2 0 R >>',
    `<< /Type /Pages /Kids [${kids}] /Count ${lines.length} >>`,
    '<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>',
    ...lines.flatMap((line, index) => {
      const stream = `BT /F1 24 Tf 72 700 Td (${line}) Tj ET`
      return [
        `<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents ${5 + index * 2} 0 R /Resources << /Font << /F1 3 0 R >> >> >>`,
        `<< /Length ${stream.length} >>\nstream\n${stream}\nendstream`,
      ]
    }),
  ]
  let pdf = '%PDF-1.4\n'
  const offsets = objects.map((object, index) => {
    const at = pdf.length
    pdf += `${index + 1} 0 obj\n${object}\nendobj\n`
    return String(at).padStart(10, '0')
  })
  const table = ['0000000000 65535 f ', ...offsets.map((offset) => `${offset} 00000 n `)].join('\n')
  return `${pdf}xref\n0 ${objects.length + 1}\n${table}\ntrailer << /Size ${objects.length + 1} /Root 1 0 R >>\nstartxref\n${pdf.length}\n%%EOF\n`
}

/** A PDF of a few kilobytes whose page unpacks to so many megabytes. */
export async function pdfBomb(megabytes: number): Promise<Buffer> {
  const packer = createDeflate({ level: constants.Z_BEST_COMPRESSION })
  const chunks: Buffer[] = []
  packer.on('data', (chunk: Buffer) => chunks.push(chunk))
  const spaces = Buffer.alloc(1_000_000, ' ')
  for (let count = 0; count < megabytes; count++) {
    await new Promise<void>((resolve) => void packer.write(spaces, () => resolve()))
  }
  await new Promise<void>((resolve) => packer.once('end', resolve).end())
  const content = deflateSync(Buffer.concat(chunks), { level: 9 })
  const [start, end] = pdfOf(['PAGE']).split(/<< \/Length \d+ >>\nstream\n[^]*?\nendstream/)
  const stream = `<< /Length ${content.length} /Filter [/FlateDecode /FlateDecode] >>\nstream\n`
  return Buffer.concat([Buffer.from(`${start}${stream}`), content, Buffer.from(`\nendstream${end}`)])
}
