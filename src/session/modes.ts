import type { Answer, Harness, HarnessStream, ModelRef, Prompt, ResumeOptions, RunOptions } from '../index.js'

/** The part of a harness that a session calls. */
export interface ModeHarness<Output = unknown> {
  stream(prompt: Prompt, options?: RunOptions): HarnessStream<Output>
  streamResume(runId: string, answers: readonly Answer[], options?: ResumeOptions): HarnessStream<Output>
  streamRecover(runId: string, options?: ResumeOptions): HarnessStream<Output>
  cancel(runId: string, options?: Pick<RunOptions, 'log'>): Promise<boolean>
}

/** Harnesses by the name of their mode. */
export type Modes = Readonly<Record<string, ModeHarness>>

/** The output of a mode's harness. */
export type OutputOf<Mode> = Mode extends { stream(prompt: Prompt): HarnessStream<infer Output> } ? Output : never

/** Modes of sessions that have one harness. */
export interface OneMode<Output> extends Record<string, ModeHarness> {
  readonly default: Harness<Output>
}

export type { ModelRef }
