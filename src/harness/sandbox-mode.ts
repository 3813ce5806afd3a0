import type { SandboxMode, ToolSpec } from '#core/tools/tool-spec.js'

/** How the programs of a tool are to be confined; null if not at all, or if the tool says nothing. */
export function modeOf({ sandbox = 'off' }: ToolSpec, ofHarness: SandboxMode): 'auto' | 'required' | null {
  const mode = sandbox === 'harness' ? ofHarness : sandbox
  return mode === 'off' ? null : mode
}

/** For tools that want a sandbox which this machine does not have; null if all is well. */
export function sandboxWarning(
  tools: readonly ToolSpec[],
  ofHarness: SandboxMode,
  state: { readonly problem: string | undefined } | null,
): string | null {
  if (state?.problem === undefined) return null
  const toolNames = (mode: 'auto' | 'required'): string =>
    tools.flatMap((tool) => (modeOf(tool, ofHarness) === mode ? [`\`${tool.name}\``] : [])).join(', ')
  const [open, refused] = [toolNames('auto'), toolNames('required')]
  const texts = [
    `This machine has no sandbox (${state.problem}).`,
    ...(open === '' ? [] : [`Programs of ${open} run with all rights of this process and can read its environment.`]),
    ...(refused === '' ? [] : [`Programs of ${refused} are not started.`]),
  ]
  return texts.join(' ')
}
