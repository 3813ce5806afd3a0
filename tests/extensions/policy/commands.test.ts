import { homedir } from 'node:os'
import { describe, expect, test } from 'vitest'
import { explain } from 'thinharness/policy'
import type { Rule } from 'thinharness/policy'
import { LAUNCHERS } from '#extensions/policy/shell/inner-commands.js'

const decide = (rules: readonly Rule[], command: unknown, more: Readonly<Record<string, string>> = {}) =>
  explain(rules, { tool: 'bash', args: { command: command as string, ...more } }).decision

const allow = (...commands: string[]): Rule[] => commands.map((command) => ({ decision: 'allow', command }))
const deny = (...commands: string[]): Rule[] => [
  { decision: 'allow', tool: 'bash' },
  ...commands.map((command): Rule => ({ decision: 'deny', command })),
]

describe('commands that rules allow', () => {
  test.each<[string, string]>([
    ['git status', 'git status'],
    ['git status', '  git   status  '],
    ['git status *', 'git status'],
    ['git status *', 'git status --short -- src'],
    ['git status *', '! git status | git status && git status & git status'],
    ['git status *', 'if git status; then git status -s; fi'],
    ['git status *', 'for f in a b; do git status "$f"; done'],
    ['git status *', '(git status); { git status; }'],
    ['git status *', 'git sta\\\ntus # rm -rf /'],
    ['git status *', "g'it' \"status\" $'x'"],
    ['git status *', 'git status *.md {a,b} ~/x'],
    ['git status *', 'time git status'],
    ['git commit -m *', 'git commit -m "a; rm -rf / && b"'],
    ['git log --format=* *', "git log --format='%h | %s' -5"],
    ['git checkout feature/*', 'git checkout feature/a-b'],
    ['git commit -m "first one"', "git commit -m 'first one'"],
    ['A=b make', 'A=b make'],
    ['*', 'anything at all'],
    ['timeout 60 npm test *', 'timeout 60 npm test -- a'],
    ["bash -c 'npm test'", 'bash -c "npm test"'],
    ['find . -name * -exec wc -l *', "find . -name '*.ts' -exec wc -l {} +"],
  ])('%s allows %s', (rule, command) => {
    expect(decide(allow(rule), command)).toBe('allow')
  })

  test.each<[string, string]>([
    ['git status', 'git status --short'],
    ['git status *', 'git statusx'],
    ['git *', 'rm git'],
    ['git st*', 'git stash pop'],
    ['git * status', 'git a b status'],
    ['git status *', 'git status; rm x'],
    ['git status *', 'git status && rm x'],
    ['git status *', 'git status || rm x'],
    ['git status *', 'git status | rm x'],
    ['git status *', 'git status |& rm x'],
    ['git status *', 'git status & rm x'],
    ['git status *', 'git status\nrm x'],
    ['git status *', 'git status $(rm x)'],
    ['git status *', 'git status `rm x`'],
    ['git status *', 'git status "$(rm x)"'],
    ['git status *', 'git status <(rm x)'],
    ['git status *', 'git status > x'],
    ['git status *', 'git status < x'],
    ['git status *', 'git status 2>&1'],
    ['git status *', 'git status <<E\n$(rm x)\nE'],
    ['git status *', 'GIT_EXTERNAL_DIFF=rm git status'],
    ['git status *', 'PATH=. ; git status'],
    ['git status *', 'git() { rm x; }; git status'],
    ['git status *', 'alias git=rm; git status'],
    ['git status *', './git status'],
    ['git status *', '$GIT status'],
    ['git status *', 'git ${x:-status}'],
    ['git status *', 'git status ${x@P}'],
    ['git status *', 'git status $((a[1]))'],
    ['git status *', 'git status "unterminated'],
    ['git status *', 'if git status; then rm x; fi'],
    ['git status *', 'git status; for f in a; do rm $f; done'],
    ['git status *', 'case x in x) rm x;; esac; git status'],
    ['git checkout a*', 'git checkout a$X'],
    ['git checkout a', 'git checkout {a,b}'],
    ['* *', 'x=$(rm y)'],
    ['xargs *', 'xargs rm'],
    ['sudo *', 'sudo -u root rm x'],
    ['env *', 'env A=b rm x'],
    ['timeout *', 'timeout -k 5 10 rm x'],
    ['find *', 'find . -exec rm {} ;'],
    ['bash *', 'bash -c "rm x"'],
    ['bash *', 'bash'],
    ['bash *', 'bash -s'],
    ['eval *', 'eval "rm x"'],
    ['printf *', "printf -v 'a[$(rm x)]' b"],
    ['test *', "test -v 'a[$(rm x)]'"],
    ['[[ *', '[[ a -eq b ]]'],
    ['trap *', "trap 'rm x' EXIT"],
  ])('%s does not allow %s', (rule, command) => {
    expect(decide(allow(rule), command)).not.toBe('allow')
  })

  test('a launcher whose options are not known lets no second command through', () => {
    const unknown = [...LAUNCHERS].filter(([, launcher]) => launcher.isUnknown === true).map(([name]) => name)
    expect(unknown.length).toBeGreaterThan(40)
    const commands = ['ls', '-x 1 ls', '--option=a b ls', 'A=b -n sh -c ls', '$X ls', '"ls -l"', '']
    for (const name of unknown) {
      for (const command of commands.map((rest) => `${name} ${rest}`)) {
        expect(decide(allow(`${name} *`, 'ls *', 'sh *'), command), command).toBe('ask')
        expect(decide([{ decision: 'allow', tool: 'bash' }], command), command).toBe('ask')
        expect(decide(allow(command.trim()), command), command).toBe('allow')
      }
      for (const command of ['rm x', '-x 1 rm x', '-c sh -c "rm x"', '-n sudo -u a rm x'])
        expect(decide(deny('rm *'), `${name} ${command}`), command).toBe('deny')
    }
  })

  test('a command that cannot be read asks, whatever rule names the tool, unless a rule is the whole line', () => {
    const named: Rule[] = [{ decision: 'allow', tool: 'bash' }]
    for (const command of ['ls > x', 'echo $(id)', "echo 'a", 'f() { id; }; f']) {
      expect(decide(named, command)).toBe('ask')
      expect(decide([...named, ...allow(command)], ` ${command}\n`)).toBe('allow')
      expect(decide([...named, ...allow(`${command}; x`)], command)).toBe('ask')
    }
    expect(decide(named, 'ls; id | wc -l')).toBe('allow')
  })

  test('a command as a list of words has no syntax', () => {
    expect(decide(allow('git status *'), ['git', 'status', '; rm x'])).toBe('allow')
    expect(decide(allow('bash *'), ['bash', '-c', 'rm x'])).not.toBe('allow')
  })
})

describe('commands that rules deny', () => {
  test.each<[string, string]>([
    ['rm *', 'rm x'],
    ['rm *', 'ls; rm x'],
    ['rm *', 'ls | rm x'],
    ['rm *', '/bin/rm x'],
    ['rm *', '\\rm x'],
    ['rm *', 'A=b rm x'],
    ['rm *', '$(rm x)'],
    ['rm *', 'echo "`rm x`"'],
    ['rm *', 'cat <<E\n$(rm x)\nE'],
    ['rm *', 'f() { rm x; }; f'],
    ['rm *', 'sudo rm x'],
    ['rm *', 'sudo -n -u root -- rm x'],
    ['rm *', 'env -i A=b nice -n 5 nohup rm x'],
    ['rm *', 'timeout --signal=KILL 5 rm x'],
    ['rm *', 'ls | xargs -0 -n 1 rm'],
    ['rm *', 'find . -name x -exec rm {} +'],
    ['rm *', "bash -lc 'ls; rm x'"],
    ['rm *', 'sh -c "$(rm x)"'],
    ['rm *', 'eval rm x'],
    ['rm *', "eval 'rm' 'x'"],
    ['rm *', 'command rm x'],
    ['rm *', "trap 'rm x' EXIT"],
    ['rm *', 'unshare -r rm x'],
    ['rm *', "r''m x"],
    ['rm *', "$'\\x72m' x"],
    ['rm *', 'while true; do rm x; done'],
    ['rm *', '! time rm x'],
    ['rm *', 'coproc rm x'],
    ['rm *', 'RM x'],
    [`rm ${homedir()}/x`, 'rm ~/x'],
    [`${homedir()}/bin/x *`, '~/bin/x y'],
    ['git push *', 'sudo env A=b git push --force'],
  ])('%s denies %s', (rule, command) => {
    expect(decide(deny(rule), command)).toBe('deny')
  })

  test.each<[string, string]>([
    ['rm -rf *', 'rm $FLAGS x'],
    ['rm -rf *', 'rm {-rf,x}'],
    ['rm *', 'r{m,n} x'],
    ['rm *', '$X x'],
    ['rm *', 'xargs $X'],
    ['rm *', 'echo rm x | sh'],
    ['rm *', 'eval "$X"'],
  ])('%s may be %s, so a person is asked', (rule, command) => {
    expect(decide(deny(rule), command)).toBe('ask')
  })

  test.each<[string, string]>([
    ['rm *', 'echo rm x'],
    ['rm *', 'git rm x'],
    ['rm -rf *', 'rm *.md'],
    ['rm *', 'ls # rm x'],
    ['rm *', 'grep "rm x" f'],
  ])('%s does not deny %s', (rule, command) => {
    expect(decide(deny(rule), command)).toBe('allow')
  })
})
