import { fileLog } from 'thinharness'
import { localTraces, traceLog } from 'thinharness/tracing'

await traceLog(localTraces({ dir: './traces' }), fileLog('./runs').read({ kind: 'run', id: 'run_1042' }))
