import { messageOf } from '#contracts/errors.js'
import type { Answer } from '#core/state/answers.js'
import type { HarnessDescription } from '#harness/launch/describe.js'
import type { InputAbout } from '#contracts/input.js'
import type { InputMessage } from '#core/stream/input.js'
import type { HarnessStream } from '#core/stream/stream.js'
import type { Model, ModelCapabilities } from '#core/model-session.js'
import type { ModelRef } from '#contracts/model-reference.js'
import type { Prompt, ResumeOptions, RunOptions } from '#harness/options.js'
import type { RunEvent } from '#core/state/events.js'
import { SessionError } from '../errors.js'

/** The part of a harness that a session calls. Its `deps` come from its own factory. */
export interface ModeHarness<Output = unknown> {
  stream(prompt: Prompt, options?: Omit<RunOptions, 'deps'>): HarnessStream<Output>
  streamResumeRun(
    runId: string,
    answers: readonly Answer[],
    options?: Omit<ResumeOptions, 'deps'>,
  ): HarnessStream<Output>
  streamRecover(runId: string, options?: Omit<ResumeOptions, 'deps'>): HarnessStream<Output>
  cancel(runId: string, options?: Pick<RunOptions, 'log'>): Promise<boolean>
  describe(): Promise<HarnessDescription>
  /** A stored event as readers get it. Absent: unchanged. */
  readonly redact?: ((event: RunEvent) => RunEvent) | undefined
  /** What somebody says, as its extensions let it pass. Absent: unchanged. */
  readonly input?: ((content: InputMessage, about: InputAbout) => Promise<InputMessage>) | undefined
  /** The names of its extensions. Absent: unknown. */
  readonly extensionNames?: readonly string[] | undefined
  /** The capabilities of its model, or of another one. Absent: unknown. */
  readonly capabilities?: ((model?: ModelRef | Model) => Promise<ModelCapabilities>) | undefined
}

/** Harnesses by the name of their mode. */
export type Modes = Readonly<Record<string, ModeHarness>>

/** The output of a mode's harness. */
export type OutputOf<Mode> = Mode extends { stream(prompt: Prompt): HarnessStream<infer Output> } ? Output : never

/** Throws a `SessionError` for a mode that the sessions do not have. */
export function checkMode(modes: Modes, mode: string): void {
  if (Object.hasOwn(modes, mode)) return
  const names = Object.keys(modes).map((name) => `\`${name}\``)
  throw new SessionError('unknown_mode', `There is no mode \`${mode}\`; there are ${names.join(', ')}.`)
}

/** What turns references into models; null: the harnesses. */
interface ModelSource {
  readonly resolveModel: ((reference: ModelRef) => Model | Promise<Model>) | null
}

/** The model for a reference; the reference itself if harnesses resolve it, and null for none. Throws a `SessionError`. */
export async function resolvedModel(
  { resolveModel }: ModelSource,
  reference: ModelRef | null,
): Promise<ModelRef | Model | null> {
  if (reference === null || resolveModel === null) return reference
  try {
    return await resolveModel(reference)
  } catch (cause) {
    throw new SessionError('unknown_model', `There is no model \`${reference}\`: ${messageOf(cause)}`, { cause })
  }
}
