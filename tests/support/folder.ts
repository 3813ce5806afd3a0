import { mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterAll, afterEach, beforeEach, vi } from 'vitest'

const created: string[] = []
afterAll(() => {
  for (const folder of created.splice(0)) rmSync(folder, { recursive: true, force: true })
})

/** A new folder; removed after the tests of the file. */
export function temporaryFolder(): string {
  const folder = realpathSync(mkdtempSync(join(tmpdir(), 'thinharness-')))
  created.push(folder)
  return folder
}

/**
 * Runs each test of the file in a new working directory with these files. After it, the directory, the environment and all
 * mocks are restored.
 */
export function inTemporaryFolder(files: Readonly<Record<string, string>> = {}): void {
  const original = process.cwd()
  beforeEach(() => {
    process.chdir(temporaryFolder())
    for (const [path, text] of Object.entries(files)) {
      mkdirSync(dirname(path), { recursive: true })
      writeFileSync(path, text)
    }
  })
  afterEach(() => {
    process.chdir(original)
    vi.unstubAllEnvs()
    vi.restoreAllMocks()
  })
}
