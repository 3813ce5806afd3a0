import { readFileSync, readdirSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { parse } from 'yaml'
import { expect, test } from 'vitest'

const root = resolve(import.meta.dirname, '../..')
const folder = join(root, '.github/workflows')
const { scripts, engines, ...manifest } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as {
  readonly scripts: Readonly<Record<string, string>>
  readonly engines: { readonly node: string }
}

interface Workflow {
  readonly on: unknown
  readonly permissions: Readonly<Record<string, string>>
  readonly jobs: Readonly<Record<string, Job>>
}

interface Job {
  readonly 'runs-on': string
  readonly 'timeout-minutes': number
  readonly permissions?: Readonly<Record<string, string>>
  readonly strategy?: { readonly matrix: Readonly<Record<string, readonly (string | number)[]>> }
  readonly steps: readonly Step[]
}

interface Step {
  readonly run?: string
  readonly uses?: string
  readonly with?: Readonly<Record<string, string>>
}

const workflows = readdirSync(folder).map(
  (name) => [name, parse(readFileSync(join(folder, name), 'utf8')) as Workflow] as const,
)

function jobsOf(file: string): Workflow['jobs'] {
  return workflows.find(([name]) => name === file)?.[1].jobs ?? {}
}

/** The scripts of package.json that a text runs. */
function scriptsIn(text: string): readonly string[] {
  return [...text.matchAll(/\bnpm (?:run )?(?:--silent )?([\w:]+)/g)]
    .flatMap(([, name = '']) => name)
    .filter((name) => !['ci', 'install'].includes(name))
}

test.each(workflows)(
  '%s is valid, ends by itself, may do no more than it needs, and runs scripts that exist',
  (_, workflow) => {
    expect(workflow.on).toBeDefined()
    expect(workflow.permissions).toEqual({ contents: 'read' })
    const steps = Object.values(workflow.jobs).flatMap((job) => {
      expect(job['runs-on']).toBe('ubuntu-latest')
      expect(job['timeout-minutes']).toBeGreaterThan(0)
      return job.steps
    })
    for (const { run, uses } of steps) expect([run, uses].filter((each) => each !== undefined)).toHaveLength(1)
    const commands = steps.flatMap((step) => [step.run ?? '', ...Object.values(step.with ?? {}).map(String)])
    const called = commands.flatMap(scriptsIn)
    expect(called.length).toBeGreaterThan(0)
    expect(called.filter((name) => scripts[name] === undefined)).toEqual([])
  },
)

test('the tests run on each version of Node that the package supports, and each suite of the package trials is run', () => {
  const jobs = jobsOf('ci.yml')
  const versions = jobs['test']?.strategy?.matrix['node'] ?? []
  expect(versions).toEqual([20, 22, 24, 26])
  expect(engines.node).toBe(`>=${versions[0]}.19.0`)
  const source = readFileSync(join(root, 'e2e/bundlers/run.js'), 'utf8')
  const [, listed = ''] = /const SUITES = \{([^}]*)\}/.exec(source) ?? []
  const suites = [...listed.matchAll(/^\s*(\w+)[:,]/gm)].map(([, name]) => name)
  expect(jobs['package']?.strategy?.matrix['suite']).toEqual(suites)
})

test('publishing needs no token: the registry trusts the workflow, and each version says where it comes from', () => {
  const text = readFileSync(join(folder, 'release.yml'), 'utf8')
  const jobs = jobsOf('release.yml')
  expect(jobs['release']?.permissions).toMatchObject({ 'id-token': 'write' })
  expect(text).not.toContain('NPM_TOKEN')
  expect(text).toContain("NPM_CONFIG_PROVENANCE: 'true'")
})

test('the site that is published is the one that `npm run site` builds, by a job that may change nothing else', () => {
  const job = jobsOf('site.yml')['publish']
  expect(job?.permissions).toEqual({ contents: 'read', pages: 'write', 'id-token': 'write' })
  const upload = job?.steps.find(({ uses }) => uses?.startsWith('actions/upload-pages-artifact@') === true)
  const source = readFileSync(join(root, 'scripts/staging.js'), 'utf8')
  expect(source).toContain(`process.env['SITE_FOLDER'] ?? '${upload?.with?.['path']}'`)
})

test('each changeset names the package and a kind of release', () => {
  const files = readdirSync(join(root, '.changeset')).filter((name) => name.endsWith('.md'))
  for (const name of files) {
    const text = readFileSync(join(root, '.changeset', name), 'utf8')
    const [, head = '', words = ''] = /^---\n([\s\S]*?)---\n([\s\S]*)$/.exec(text) ?? []
    const releases = parse(head) as Readonly<Record<string, string>> | null
    // An empty one is for a change that users do not notice.
    if (releases === null) continue
    expect(Object.keys(releases)).toEqual(['thinharness'])
    expect(['patch', 'minor', 'major']).toContain(releases['thinharness'])
    expect(words.trim()).not.toBe('')
  }
})

test('the package says where its sources are, so that relative links of the README work on the page of a registry', () => {
  const address = expect.stringMatching(/^(git\+)?https:\/\/github\.com\/[\w-]+\/thinharness/) as string
  expect(manifest).toMatchObject({ repository: { type: 'git', url: address }, homepage: address, bugs: address })
})
