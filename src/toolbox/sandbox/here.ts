import { realpath } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { sandboxSettings } from './options.js'
import { Sandbox } from './sandbox.js'
import type { SandboxState } from './sandbox.js'

/** The sandbox that tools without rules of their own have on this machine. Runs an empty command in it. */
export async function sandboxHere(): Promise<SandboxState> {
  return new Sandbox(sandboxSettings({}, 'bash')).state({ root: await realpath(tmpdir()), ownFolder: null, given: [] })
}
