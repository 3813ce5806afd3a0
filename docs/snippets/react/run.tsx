import { useRun } from 'thinharness/ui/react'

export function Report({ runId }: { readonly runId: string }) {
  const { status, text, pending, approve } = useRun({ runId })
  const approveAll = () => pending.forEach(({ callId }) => void approve(callId))
  return (
    <article aria-busy={status === 'running'}>
      <pre>{text}</pre>
      {pending.length > 0 && <button onClick={approveAll}>Approve {pending.length} calls</button>}
    </article>
  )
}
