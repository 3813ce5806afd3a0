import { spawnSync } from 'node:child_process'
import { chmod, mkdir, symlink } from 'node:fs/promises'
import { delimiter, join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { bash } from '#toolbox/bash/bash.js'
import { call, folderWith } from '../support.js'
import { formsHere, FORMS } from './support.js'

const here = await formsHere()

function morePath(...folders: readonly string[]): void {
  vi.stubEnv('PATH', [...folders, process.env['PATH']].join(delimiter))
  onTestFinished(() => void vi.unstubAllEnvs())
}

describe.for(FORMS)('the search path in the form $form', ({ form, only }) => {
  const works = here.some((each) => each.form === form)

  test.skipIf(!works)('folders that cannot be entered are left out, also of `readPaths`', async () => {
    const odd = await folderWith({ file: '', 'closed/bin/program': '' })
    await symlink('loop', join(odd, 'loop'))
    await chmod(join(odd, 'closed'), 0o000)
    const paths = ['file/bin', 'loop', 'missing', 'closed/bin', 'closed'].map((name) => join(odd, name))
    morePath(...paths)
    const tool = bash({ root: await folderWith(), sandbox: 'required', ...only, readPaths: paths })
    expect(await call(tool, { command: 'echo works' })).toMatchObject({
      content: 'stdout:\nworks\n',
      metadata: { sandbox: form },
    })
    await chmod(join(odd, 'closed'), 0o700)
  })

  // After `su`, and in images of continuous integration, the search path is that of another user.
  test.skipIf(!works || process.getuid?.() !== 0)('those of another user are left out', async () => {
    const [closed, root] = [await folderWith({ 'bin/program': '' }), await folderWith()]
    await chmod(join(closed, '..'), 0o700)
    await chmod(root, 0o777)
    for (const folder of ['..', '../..']) await chmod(join(root, folder), 0o755)
    const at = (path: string): string => pathToFileURL(join(process.cwd(), '.build/src', path)).href
    const script = `import { bash } from '${at('toolbox/index.js')}'; import { callTool } from '${at('index.js')}'
      const tool = bash(${JSON.stringify({ root, sandbox: 'required', ...only })})
      const { content, metadata } = await callTool(tool, { command: 'echo works' })
      console.log(metadata.sandbox, content)`
    const PATH = [join(closed, 'bin'), process.env['PATH']].join(delimiter)
    const { stdout, stderr } = spawnSync(process.execPath, ['--input-type=module', '-e', script], {
      ...{ cwd: '/', uid: 65_534, gid: 65_534, env: { PATH, HOME: '/nonexistent' }, encoding: 'utf8' },
    })
    expect(stdout, stderr).toContain(`${form} stdout:\nworks\n`)
  })

  test.skipIf(!works)('a tool chain brings its programs and libraries, and nothing next to them', async () => {
    const home = await folderWith({
      '.fly/bin/flyctl': '#!/bin/sh\necho flies',
      '.fly/config.yml': 'token: secret',
      '.docker/bin/tool': '',
      '.docker/config.json': 'secret',
      '.docker/contexts/meta.json': 'secret',
      '.node/v20/bin/run': '#!/bin/sh\ncat "$(dirname "$0")/../lib/code"',
      '.node/v20/lib/code': 'library',
      '.node/v20/etc/npmrc': 'secret',
      '.env-tool/shims/x': '',
      '.env-tool/credentials/key': 'secret',
    })
    for (const path of ['.fly/bin/flyctl', '.node/v20/bin/run']) await chmod(join(home, path), 0o755)
    await mkdir(join(home, '.fly/bin/plain'))
    morePath(...['.fly/bin', '.docker/bin', '.node/v20/bin', '.env-tool/shims'].map((path) => join(home, path)))
    const { content } = await call(bash({ root: await folderWith(), sandbox: 'required', ...only }), {
      command: `flyctl; run; cat $(find ${home} -type f ! -path '*/bin/*' ! -path '*/lib/*'); ls -A ${home}/.fly ${home}/.docker`,
    })
    expect(content).toContain('flies\nlibrary')
    expect(content).not.toContain('secret')
    expect(content).not.toContain('config')
  })

  test.skipIf(!works)('a home folder in the search path is not shown', async () => {
    const home = await folderWith({ 'key.txt': 'secret' })
    vi.stubEnv('HOME', home)
    morePath(home, join(home, '..'))
    const tool = bash({ root: await folderWith(), sandbox: 'required', ...only })
    expect((await call(tool, { command: `cat ${home}/key.txt` })).content).not.toContain('secret')
  })
})
