import { defineTool } from 'thinharness'
import type { Harness, HarnessResult, ToolSpec } from 'thinharness'
import { z } from 'zod'

/** A service that works for minutes or hours, and then calls a webhook of yours with `call`. */
export interface RenderService {
  start(job: { key: string; video: string; call: JobCall }): Promise<void>
}

/** The run and the call that wait for a job. */
export interface JobCall {
  readonly runId: string
  readonly callId: string
}

export function renderTool(service: RenderService): ToolSpec {
  return defineTool({
    name: 'render_video',
    description: 'Render a video. Takes up to an hour.',
    parameters: z.object({ video: z.string() }),
    async handler({ video }, { runId, callId, idempotencyKey, ask }) {
      // The handler runs again when the answer is there: with the same key, the service starts nothing twice.
      await service.start({ key: idempotencyKey, video, call: { runId, callId } })
      const { url } = await ask({ waitsFor: 'render' }, z.object({ url: z.string() }))
      return `The video is at ${url}.`
    },
  })
}

/** The webhook, in any process: the run continues with the address, or with the reason of the failure. */
export function onRendered(harness: Harness, { runId, callId }: JobCall, url: string | null): Promise<HarnessResult> {
  const answer =
    url === null ? { declined: true as const, reason: 'The video could not be rendered.' } : { answer: { url } }
  return harness.resume(runId, [{ callId, ...answer }])
}
