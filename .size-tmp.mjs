import { build } from 'esbuild'
import { gzipSync } from 'node:zlib'
import { writeFileSync } from 'node:fs'
const { outputFiles } = await build({ stdin: { contents: `export { followRun, reduceChat } from ${JSON.stringify(process.cwd()+'/src/adapters/ui/client/index.ts')}`, resolveDir: '.' }, bundle: true, write: false, minify: true, format: 'esm', platform: 'browser' })
writeFileSync('/tmp/wt/p3/client.js', outputFiles[0].contents)
console.log(gzipSync(outputFiles[0].contents).length)
