import { spawnSync } from 'node:child_process'
import { existsSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { explain } from 'thinharness/policy'
import type { Rule } from 'thinharness/policy'
import { temporaryFolder } from '../../support/folder.js'

const decide = (rules: readonly Rule[], command: string) => explain(rules, { tool: 'bash', args: { command } })

describe('a rule that allows a program with any words', () => {
  test.each<[string, ...string[]]>([
    ['rg *', 'rg --pre ./x a', 'rg --pre=./x a', 'rg a --hostname-bin=./x', 'rg "--pre=./x" a', "rg --p're' ./x a"],
    ['sort *', 'sort --compress-program=./x a', 'sort --comp ./x', 'sort -S 1 --compress-prog=./x a'],
    ['git *', 'git -c core.fsmonitor=./x status', 'git -ccore.pager=./x log', 'git --config-env=core.pager=X log'],
    ['git *', 'git --exec-path=. x', 'git config core.fsmonitor ./x', 'git -C sub -c a.b=c status', 'git -p log'],
    [
      'git *',
      'git bisect run ./x',
      'git submodule foreach ./x',
      'git rebase -x ./x main',
      'git rebase --exec ./x main',
    ],
    [
      'git *',
      'git fetch --upload-pack=./x o',
      'git clone -c a=b u',
      'git clone ext::./x',
      'git difftool -x ./x',
      'git init --template=t',
    ],
    ['git grep *', 'git grep -O./x a', 'git grep --open-files-in-pager=./x a', 'git grep -nO a', 'git grep --open a'],
    ['git log *', 'git log --ext-diff -p', 'git log -p --ext'],
    [
      'npm test *',
      'npm test --script-shell=./x',
      'npm test --script-shell ./x',
      'npm test --prefix ../other',
      'npm test -C a',
    ],
    [
      'npm *',
      'npm config set script-shell ./x',
      'npm pkg set scripts.test=./x',
      'npm --node-options=--require=./x test',
    ],
    [
      'tar *',
      'tar xf a --to-command=./x',
      'tar -I ./x -xf a',
      'tar -xI./x -f a',
      'tar xfI a ./x',
      'tar cf a b --checkpoint=1 --checkpoint-action=exec=./x',
    ],
    ['tar *', 'tar --use-comp ./x -cf a b', 'tar -cf host:a b', 'tar -cF ./x b', 'tar cf host:/x --rsh-command=./x b'],
    ['fd *', 'fd -x ./x', 'fd a --exec ./x', 'fd -HX ./x', 'fd --exec-batch ./x'],
    ['fdfind *', 'fdfind -x ./x'],
    ['split *', 'split --filter=./x a'],
    ['rsync *', 'rsync -e ./x a b', 'rsync -ave ./x a b', 'rsync --rsh=./x a b'],
    ['ssh host *', 'ssh host -o ProxyCommand=./x', 'ssh host -oProxyCommand=./x'],
    ['man *', 'man -P ./x ls', 'man --pager=./x ls'],
    ['awk *', `awk 'BEGIN { system("./x") }'`, `awk '{ print | "./x" }'`, 'awk -f ./x a'],
    ['sed *', "sed '1e ./x' a", "sed 's/a/b/e' a", "sed -n 's|a|./x|ge' a"],
    ['make *', 'make --eval=x a', 'make SHELL=./x', 'make -f other', "make 'A=$(shell ./x)'"],
    ['go test *', 'go test -exec ./x', 'go test --toolexec=./x ./...'],
    ['zip *', 'zip a b -T -TT ./x'],
    ['vim *', "vim -c '!./x' a", "vim '+!./x' a", 'vim --cmd x a'],
    ['sqlite3 *', "sqlite3 a '.shell ./x'", 'sqlite3 -cmd ".system ./x" a'],
    ['psql *', `psql -c '\\! ./x'`, `psql -c "COPY t FROM PROGRAM './x'"`],
  ])('%s asks about words that start programs', (rule, ...commands) => {
    for (const command of commands) {
      expect(decide([{ decision: 'allow', command: rule }], command), command).toMatchObject({
        decision: 'ask',
        step: 'command',
      })
      expect(
        decide(
          [
            { decision: 'allow', command: rule },
            { decision: 'deny', command: 'rm *' },
          ],
          command,
        ).decision,
        command,
      ).not.toBe('allow')
      expect(decide([{ decision: 'allow', command }], command).decision, command).toBe('allow')
    }
  })

  test.each<[string, ...string[]]>([
    ['rg *', 'rg --pretty -n --glob "*.ts" -i needle src', 'rg -uuu x -- --pre'.replace(' -- --pre', '')],
    ['sort *', 'sort -u -k2,2n --check a', 'sort -c a'],
    [
      'git *',
      'git status',
      'git -C sub log --oneline -5',
      'git diff --stat -- src',
      'git commit -m "fix: config, exec"',
      'git checkout -b x',
    ],
    [
      'git *',
      'git cherry-pick -x abc',
      'git push -u origin main',
      'git clean -xdn',
      'git rebase main',
      'git log --format="%h | %s"',
    ],
    ['npm test *', 'npm test -- --config x -c y', 'npm test --silent', 'npm test --workspaces'],
    ['npm run *', 'npm run build -- -c x', 'npm run lint'],
    ['tar *', 'tar -xzf LICENSE.tar.gz', 'tar czf a.tgz FILES src', 'tar tvf a'],
    ['fd *', 'fd -e ts -t f needle', 'fd --extension ts'],
    ['awk *', `awk '$1 > 5 || $2 { print $3 }' a`],
    ['sed *', "sed -n '1,5p' a", "sed 's/one/three/g' e.txt"],
    ['make *', 'make -j4 test', 'make test A=b'],
    ['pytest *', 'pytest -x -q tests/a.py::test_b'],
    ['make -C sub *', 'make -C sub test'],
    ['git config --get *', 'git config --get user.name'],
    ['go run ./cmd *', 'go run ./cmd a b'],
    ['uv run pytest *', 'uv run pytest -x'],
  ])('%s allows what starts none, and what it spells out', (rule, ...commands) => {
    for (const command of commands)
      expect(decide([{ decision: 'allow', command: rule }], command).decision, command).toBe('allow')
  })

  test('a rule for the whole tool is not about words, unless another rule denies a command', () => {
    const all: Rule = { decision: 'allow', tool: 'bash' }
    expect(decide([all], 'rg --pre ./x a').decision).toBe('allow')
    expect(decide([all, { decision: 'deny', command: 'rm *' }], 'rg --pre ./x a').decision).toBe('ask')
  })
})

// Each is tried in a real shell; those whose program is missing remove nothing and say nothing.
const LAUNCHING = [
  ...'env|nohup|nice|nice -n 5|timeout 5|time|stdbuf -o0|setsid -w|ionice -c3|chrt -o 0|taskset 1|choom -n 0 --|command|exec|builtin command'.split(
    '|',
  ),
  ...'linux64|linux32|x86_64|i386|uname26|setarch -R|unshare|nsenter --|prlimit|runcon -t x|capsh -- -c|busybox|toybox|fakeroot|eatmydata'.split(
    '|',
  ),
  ...'sg root -c|newgrp|su -c|runuser -u root --|setpriv --|start-stop-daemon --start --exec|script -qec|flock f.lock|strace -o /dev/null|ltrace'.split(
    '|',
  ),
  ...'xargs -a /dev/null|echo f xargs|find f -exec|run-parts|watch -g|parallel|chronic|ifne|tini --|dumb-init|gosu root|su-exec root'.split(
    '|',
  ),
  ...'/lib64/ld-linux-x86-64.so.2 /bin/rm #|/lib/ld-linux-aarch64.so.1 /bin/rm #|sudo -n|doas|systemd-run --wait|systemd-cat|coreutils --coreutils-prog=rm #'.split(
    '|',
  ),
  ...'bash -c|sh -c|dash -c|eval|trap "" 0;|catchsegv|valgrind -q|gdb -batch -ex run --args|perf stat|hyperfine|expect -c|unbuffer|faketime now|datefudge now|daemonize'.split(
    '|',
  ),
  ...'npx|npm exec --|bunx|uv run|poetry run|bundle exec|direnv exec .|nix run|docker run x|podman run x|kubectl exec x --|ip netns exec x|envdir .|chpst|softlimit'.split(
    '|',
  ),
]

function lineOf(launcher: string): string {
  if (launcher.endsWith('#')) return launcher.replace('#', 'f')
  if (launcher.includes('find')) return `${launcher} rm {} \\;`
  if (launcher.includes('xargs') && launcher.startsWith('echo')) return 'echo f | xargs rm'
  return /(?:-c|-qec|eval)$/.test(launcher) ? `${launcher} "rm f"` : `${launcher} rm f`
}

test('whatever starts `rm` in a real shell is seen by a rule that denies it', { timeout: 120_000 }, () => {
  const rules: Rule[] = [
    { decision: 'allow', tool: 'bash' },
    { decision: 'deny', command: 'rm *' },
  ]
  let started = 0
  const missed: string[] = []
  for (const launcher of LAUNCHING) {
    const line = lineOf(launcher)
    const folder = temporaryFolder()
    writeFileSync(join(folder, 'f'), '')
    spawnSync('/bin/bash', ['-c', line], { cwd: folder, timeout: 3_000, stdio: 'ignore' })
    const isRemoved = !existsSync(join(folder, 'f'))
    if (isRemoved) started++
    if (decide(rules, line).decision === 'allow') missed.push(`${line}${isRemoved ? ' (starts it here)' : ''}`)
  }
  expect(missed).toEqual([])
  expect(started).toBeGreaterThan(10)
})
