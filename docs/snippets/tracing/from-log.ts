import { fileLog } from 'thinharness'
import { localTraces, traceLog } from 'thinharness/tracing'

await traceLog(localTraces({ dir: './traces' }), fileLog('./runs').read('run_1042'))
