import type { RunSummary } from 'thinharness'

const WIDTH = 24

/** Shows how the jobs of each customer stand: in place on a terminal, elsewhere when a quarter more is done. */
export function drawn(): (tenants: readonly string[], runs: readonly RunSummary[]) => void {
  let shown = -1
  return (tenants, runs) => {
    const lines = tenants.map((tenant) => lineOf(tenant, runs))
    const done = runs.filter(({ status }) => status === 'completed').length
    const quarter = Math.floor((4 * done) / Math.max(1, runs.length))
    if (!process.stdout.isTTY && quarter === shown) return
    // On a terminal, over the lines of the last time; what is printed in between stays above.
    const up = process.stdout.isTTY && shown >= 0 ? `\u001B[${lines.length}A\u001B[J` : ''
    shown = quarter
    process.stdout.write(`${up}${lines.join('\n')}\n`)
  }
}

function lineOf(tenant: string, runs: readonly RunSummary[]): string {
  const own = runs.filter(({ labels }) => labels['tenant'] === tenant)
  const count = (...statuses: readonly string[]): number => own.filter(({ status }) => statuses.includes(status)).length
  const [done, working, left] = [count('completed', 'failed'), count('running'), count('interrupted')]
  const filled = Math.round((WIDTH * done) / Math.max(1, own.length))
  const bar = '█'.repeat(filled) + '░'.repeat(WIDTH - filled)
  const states = `done ${done} · working ${working} · left by a dead worker ${left} · waiting ${count('queued')}`
  return `${tenant.padEnd(10)} ${bar} ${states}`
}
