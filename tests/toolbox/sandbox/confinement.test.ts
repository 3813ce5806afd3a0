import { spawnSync } from 'node:child_process'
import { link, mkdir, readFile, readdir, symlink } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { bash } from '#toolbox/bash/bash.js'
import type { BashOptions } from '#toolbox/bash/options.js'
import { isAlive } from '../../support/process.js'
import { call, folderWith } from '../support.js'
import { formsHere, FORMS, portOf, processWithSecret, serverHere } from './support.js'

const here = await formsHere()

// Each test is a line of the table in docs/sandbox.md.
describe.for(FORMS)('a command in the form $form', ({ form, only }) => {
  const works = here.some((each) => each.form === form)

  async function run(root: string, command: string, options: BashOptions = {}): Promise<string> {
    const { content, metadata } = await call(bash({ root, sandbox: 'required', ...only, ...options }), { command })
    expect(metadata['sandbox'], content).toBe(form)
    return content
  }

  test.skipIf(!works)(
    'BA-18 cannot read files outside the root, nor through links in the root or hard links made in it',
    async () => {
      const outside = await folderWith({ 'secret.txt': 'top secret' })
      const root = await folderWith({ 'a.txt': 'mine' })
      await symlink(join(outside, 'secret.txt'), join(root, 'link'))
      await symlink(outside, join(root, 'folder'))
      const command = `cat a.txt ${outside}/secret.txt link folder/secret.txt ../../*/*/secret.txt; ln ${outside}/secret.txt hard
      ln -s / all; cat all${outside}/secret.txt; ls /home /root /var/run /proc/1/root${outside}; find / -name secret.txt 2>/dev/null`
      const content = await run(root, command)
      expect(content).toContain('mine')
      expect(content).not.toContain('top secret')
      expect(content).not.toMatch(/^\/.*secret\.txt$/m)
    },
  )

  test.skipIf(!works)('BA-19 can write to the root and an own `/tmp` only; the system is read-only', async () => {
    const [root, outside] = [await folderWith(), await folderWith()]
    const command = `echo a > a.txt; echo b > /tmp/b.txt && cat /tmp/b.txt
      for each in ${outside}/x /usr/x /etc/x /proc/sys/kernel/hostname /proc/sys/kernel/core_pattern /proc/sysrq-trigger; do echo x > $each || echo refused $each; done
      mount -o remount,rw,bind /usr; mount -t tmpfs t /mnt; umount /usr; echo x > /usr/x`
    const content = await run(root, command)
    expect(content).toContain('b\n')
    const refused = [
      `${outside}/x`,
      '/usr/x',
      '/proc/sys/kernel/hostname',
      '/proc/sys/kernel/core_pattern',
      '/proc/sysrq-trigger',
    ]
    for (const path of refused) expect(content).toContain(`refused ${path}\n`)
    expect(await readFile(join(root, 'a.txt'), 'utf8')).toBe('a\n')
    expect(await readdir(outside)).toEqual([])
  })

  test.skipIf(!works || form !== 'bubblewrap')('has no keyring of the kernel', async () => {
    const calls = process.arch === 'x64' ? [248, 249, 250] : [217, 218, 219]
    const script = `for my $call (${calls.join(', ')}) { syscall($call, my $kind = "user", my $name = "n", my $key = "k", 1, -3); print $! + 0, " " }`
    const end = spawnSync('perl', ['-e', script], { encoding: 'utf8' })
    const inside = await run(await folderWith(), `perl -e '${script}'`)
    expect(end.stdout).toMatch(/^\d+ \d+ \d+ $/)
    // ENOSYS
    expect(inside).toContain('38 38 38')
  })

  test.skipIf(!works)('BA-20 has an empty home folder', async () => {
    const root = await folderWith()
    await folderWith({ 'of-another.txt': '' })
    // An ordinary user may not look into the home of root, outside of a sandbox either.
    const content = await run(root, 'echo $HOME; ls -AR ~; ls ~root 2>&1; true')
    expect(content).toMatch(/^stdout:\n\/tmp\n/)
    expect(content).not.toContain('of-another')
  })

  test.skipIf(!works)("BA-21 cannot change the harness's own folder, replace it, or move it away", async () => {
    const root = await folderWith({ '.thinharness/runs/a.jsonl': 'log' })
    const command = `echo x > .thinharness/runs/a.jsonl; rm -rf .thinharness; mv .thinharness old; rmdir .thinharness
      ln -sfn / .thinharness; ls -A`
    expect(await run(root, command)).toContain('.thinharness')
    expect(await readFile(join(root, '.thinharness/runs/a.jsonl'), 'utf8')).toBe('log')
  })

  test.skipIf(!works)('BA-22 finds protected files empty, and cannot write those that run programs later', async () => {
    const root = await folderWith({
      '.env': 'KEY=secret',
      'packages/a/.env': 'KEY=secret',
      '.ssh/id_ed25519': 'secret',
      '.env.example': 'KEY=',
      '.git/config': '[core]',
      '.git/hooks/pre-commit': 'exit',
      '.mcp.json': '{}',
      '.vscode/tasks.json': '{}',
    })
    const command = `cat .env packages/a/.env .ssh/* .env.example
      for each in .git/config .git/hooks/pre-commit .git/hooks/new .mcp.json .vscode/tasks.json .env; do echo x >> $each; done
      mv .env moved; cp .env copied; ln .env linked; rm -rf .git/hooks; cat moved copied linked`
    const content = await run(root, command)
    expect(content).not.toContain('secret')
    expect(content).toContain('KEY=')
    const texts = ['.git/config', '.git/hooks/pre-commit', '.mcp.json', '.vscode/tasks.json', '.env']
    expect(await Promise.all(texts.map((path) => readFile(join(root, path), 'utf8')))).toEqual([
      '[core]',
      'exit',
      '{}',
      '{}',
      'KEY=secret',
    ])
    expect(await readdir(join(root, '.git/hooks'))).toEqual(['pre-commit'])
    expect(await run(root, 'cat .env', { protect: false })).toContain('KEY=secret')
    expect(await run(root, 'cat .env; cat a.txt', { protect: { read: ['*.txt'], write: [] } })).toContain('KEY=secret')
  })

  test.skipIf(!works)('BA-23 a link in the place of a protected file shows nothing of its target', async () => {
    const outside = await folderWith({ 'secret.txt': 'top secret' })
    const root = await folderWith()
    await mkdir(join(root, '.git'))
    await symlink(join(outside, 'secret.txt'), join(root, '.git/config'))
    await symlink(outside, join(root, '.git/hooks'))
    await link(join(outside, 'secret.txt'), join(root, '.mcp.json'))
    const content = await run(root, 'cat .git/config .git/hooks/secret.txt; ls -la .git')
    expect(content).not.toContain('top secret')
  })

  test.skipIf(!works)('BA-24 sees no process of the host, and can neither signal nor trace one', async () => {
    const pid = processWithSecret('secret-of-the-host')
    const command = `cat /proc/${pid}/environ /proc/$PPID/environ /proc/*/environ | tr '\\0' '\\n'
      kill -9 ${pid} ${process.pid} || echo no such process; ls /proc | grep -c '^[0-9]'; kill -9 -1`
    const content = await run(await folderWith(), command)
    expect(content).not.toContain('secret-of-the-host')
    expect(content).toContain('no such process')
    expect(isAlive(pid)).toBe(true)
  })

  test.skipIf(!works)('BA-25 reads no key from the environment of the host', async () => {
    process.env['FAKE_API_KEY'] = 'sk-of-the-host'
    const content = await run(await folderWith(), `cat /proc/*/environ | tr '\\0' '\\n'; env`)
    delete process.env['FAKE_API_KEY']
    expect(content).toContain('TERM=dumb')
    expect(content).not.toContain('sk-of-the-host')
  })

  test.skipIf(!works)(
    'BA-26 has no network: no server of this machine answers, by address or abstract socket',
    async () => {
      const port = portOf(await serverHere())
      const name = `thinharness-${port}`
      await serverHere(`\0${name}`)
      const abstract = `require('net').connect('\\0${name}').on('data', (d) => console.log(String(d))).on('error', (e) => console.log(e.code))`
      const command = `exec 3<>/dev/tcp/127.0.0.1/${port} && cat <&3 || echo no network; '${process.execPath}' -e "${abstract}"`
      const content = await run(await folderWith(), command)
      expect(content).toContain('no network')
      expect(content).not.toContain('hello from the host')
      const open = await run(await folderWith(), `exec 3<>/dev/tcp/127.0.0.1/${port} && cat <&3`, { network: true })
      expect(open).toContain('hello from the host')
    },
  )

  test.skipIf(!works)('BA-27 finds no socket of the host: none of Docker, D-Bus or an agent', async () => {
    const folder = await folderWith()
    await serverHere(join(folder, 'agent.sock'))
    const content = await run(
      await folderWith(),
      `ls ${folder} /run /var/run 2>/dev/null; find / -type s 2>/dev/null; true`,
    )
    expect(content).toBe('(no output)')
  })

  test.skipIf(!works)('BA-28 has no privileges, and gains none by set-user-ID programs', async () => {
    const command = `grep -E '^(CapEff|CapPrm|CapAmb|NoNewPrivs)' /proc/self/status; su -c id nobody < /dev/null; chown 12345 . ; mknod x b 8 0`
    const content = await run(await folderWith(), command)
    expect(content.match(/0000000000000000/g)).toHaveLength(3)
    expect(content).toMatch(/NoNewPrivs:\s1/)
    expect(content).not.toMatch(/uid=65534/)
  })

  test.skipIf(!works)(
    'BA-29 leaves no process behind, whatever its session, and ends with a time limit or an abort',
    async () => {
      const root = await folderWith()
      // `sleep 60` is longer than a test may take: the command does not wait for it.
      await run(
        root,
        `setsid sh -c 'sleep 0.7; touch late' & (trap '' HUP TERM; sleep 0.7; touch late) & sleep 60 & true`,
      )
      const tool = bash({ root, sandbox: 'required', graceMs: 100, ...only })
      const slow = await call(tool, { command: `setsid sh -c 'sleep 0.7; touch late' & sleep 30`, timeout_ms: 300 })
      expect(slow.metadata).toMatchObject({ timeout_kind: 'soft' })
      await new Promise((resolve) => setTimeout(resolve, 1_000))
      expect(await readdir(root)).toEqual(['.thinharness'])
    },
  )

  test.skipIf(!works)(
    'BA-30 a path that is a link on the way, or is replaced, does not open another folder',
    async () => {
      const outside = await folderWith({ 'secret.txt': 'top secret' })
      const root = await folderWith({ 'sub/a.txt': '' })
      const tool = bash({ root, sandbox: 'required', ...only, readPaths: [join(root, 'sub/data')] })
      expect((await call(tool, { command: `ln -s ${outside} sub/data` })).ok).toBe(true)
      expect((await call(tool, { command: 'cat sub/data/secret.txt' })).content).not.toContain('top secret')
    },
  )
})
