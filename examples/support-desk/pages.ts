import { readFile } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import { build } from 'esbuild'

const HEADERS = { 'content-security-policy': "default-src 'self'; img-src 'self' data:", 'cache-control': 'no-store' }

/** Serves the two pages, of the customers and of the staff. `folder`: of the example. */
export async function pagesOf(folder: URL): Promise<(pathname: string) => Response> {
  const entryPoints = ['customer', 'staff'].map((name) => fileURLToPath(new URL(`page/${name}.ts`, folder)))
  const { outputFiles } = await build({ entryPoints, outdir: 'page', bundle: true, format: 'esm', write: false })
  const html = (name: string): Promise<Buffer> => readFile(new URL(`page/${name}.html`, folder))
  const files: Readonly<Record<string, readonly [type: string, body: Uint8Array | undefined]>> = {
    '/': ['text/html', await html('customer')],
    '/staff/': ['text/html', await html('staff')],
    '/page.css': ['text/css', await readFile(new URL('page/page.css', folder))],
    '/customer.js': ['text/javascript', outputFiles[0]?.contents],
    '/staff.js': ['text/javascript', outputFiles[1]?.contents],
  }
  return (pathname) => {
    const [type, body] = files[pathname] ?? []
    if (body === undefined) return new Response('Not found', { status: 404 })
    const headers = { ...HEADERS, 'content-type': `${type}; charset=utf-8` }
    return new Response(body as Uint8Array<ArrayBuffer>, { headers })
  }
}
