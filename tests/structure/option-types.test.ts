import { expectTypeOf, test } from 'vitest'
import type { z } from 'zod'
import type * as core from 'thinharness'
import type * as context from 'thinharness/context'
import type * as memory from 'thinharness/memory'
import type * as durable from 'thinharness/durable'
import type * as dbos from 'thinharness/durable/dbos'
import type * as mcp from 'thinharness/mcp'
import type * as policy from 'thinharness/policy'
import type * as providers from 'thinharness/providers'
import type * as session from 'thinharness/session'
import type * as postgres from 'thinharness/store/postgres'
import type * as sqlite from 'thinharness/store/sqlite'
import type * as testing from 'thinharness/testing'
import type * as tools from 'thinharness/tools'
import type * as tracing from 'thinharness/tracing'
import type * as acp from 'thinharness/acp'
import type * as ui from 'thinharness/ui'
import type * as client from 'thinharness/ui/client'

/** The optional fields that do not accept `undefined`, as in `{ baseUrl: process.env.BASE_URL }`. */
type Refusing<T> = T extends object
  ? { [Key in keyof T]-?: Partial<Pick<T, Key>> extends Pick<T, Key> ? Accepting<T, Key> : never }[keyof T]
  : never

type Accepting<T, Key extends keyof T> = Record<Key, undefined> extends Pick<T, Key> ? never : Key

/** Every options type of the package. */
type OptionTypes = [
  core.HarnessOptions,
  core.RunOptions,
  core.ResumeOptions,
  core.ReplayOptions,
  core.ForkOptions,
  core.ForkPoint,
  core.Limits,
  core.StallOptions,
  core.ModelSettings,
  core.ModelCapabilities,
  core.Prices,
  core.Rates,
  core.ToolOptions<z.ZodType>,
  core.ToolSpec,
  core.ToolReach,
  core.ToolAnnotations,
  core.ToolResultFields,
  core.SpawnOptions,
  core.CallToolOptions,
  core.Extension,
  core.ProvenanceOptions,
  core.ProvenanceRule,
  core.Decision,
  core.Answer,
  core.ListOptions,
  core.PruneOptions,
  core.FollowOptions,
  core.FileLogOptions,
  core.MemoryLogOptions,
  providers.ProviderOptions,
  providers.OpenAiOptions,
  providers.AnthropicOptions,
  providers.ProbeOptions,
  tools.BashOptions,
  tools.FetchUrlOptions,
  tools.FileToolOptions,
  tools.ParallelLlmOptions,
  tools.SubagentOptions,
  tools.SubagentSpec,
  mcp.McpServerOptions,
  mcp.McpHttpOptions,
  mcp.McpStdioOptions,
  mcp.ServeMcpOptions,
  testing.ConformanceOptions,
  testing.ScriptedModelOptions,
  testing.ScriptedProviderOptions,
  tracing.OpenTelemetryOptions,
  tracing.LocalTracesOptions,
  sqlite.SqliteLogOptions,
  postgres.PostgresLogOptions,
  durable.StretchWork,
  dbos.DbosRunsOptions,
  dbos.StartOptions,
  core.CloseOptions,
  core.MapOptions,
  core.RunLimits,
  core.StallRules,
  tools.SandboxOptions,
  tools.SkillsOptions,
  session.SessionsOptions,
  session.SessionLimits,
  session.CreateOptions,
  session.ListThreadsOptions,
  session.SendOptions,
  session.ChatResources,
  session.EventsOptions,
  session.InboxOptions,
  session.ExpireOptions,
  session.ItemAnswer,
  session.ModeHarness,
  policy.PolicyOptions,
  policy.Conditions,
  policy.Rule,
  context.ClearResultsOptions,
  context.CountOptions,
  context.ObserveOptions,
  context.SummariseOptions,
  memory.MemoryOptions,
  acp.AcpOptions,
  acp.AgentInfo,
  ui.HandlerOptions,
  ui.HubOptions,
  ui.FollowRunOptions,
  ui.ProjectionOptions,
  ui.NativeOptions,
  ui.UiStreamOptions,
  ui.UiMessagesOptions,
  ui.AgUiOptions,
  ui.AgUiMessagesOptions,
  ui.AgUiCapabilitiesOptions,
  client.FollowUrlOptions,
  client.RunTransportOptions,
]

test('an option may be undefined where it may be absent', () => {
  expectTypeOf<Refusing<OptionTypes[number]>>().toEqualTypeOf<never>()
  expectTypeOf<Refusing<{ readonly a?: string; readonly b?: string | undefined }>>().toEqualTypeOf<'a'>()
})

interface Customer {
  readonly tenant: string
  readonly limits: { readonly perDay?: number }
}

test('JSON may be of an interface without an index signature', () => {
  expectTypeOf<Customer>().toExtend<NonNullable<core.RunOptions['metadata']>>()
  expectTypeOf<Customer>().toExtend<NonNullable<core.ResumeOptions['metadata']>>()
  expectTypeOf<Customer>().toExtend<NonNullable<core.ForkOptions['metadata']>>()
  expectTypeOf<Customer>().toExtend<NonNullable<core.SpawnOptions['metadata']>>()
  expectTypeOf<Customer>().toExtend<NonNullable<core.CallToolOptions['metadata']>>()
  expectTypeOf<Customer>().toExtend<NonNullable<core.ToolResultFields['metadata']>>()
  expectTypeOf<Customer>().toExtend<NonNullable<dbos.StartOptions['metadata']>>()
  expectTypeOf<Customer>().toExtend<Parameters<core.ToolContext['progress']>[0]>()
  expectTypeOf<Customer>().toExtend<Parameters<core.ToolContext['ask']>[0]>()
  expectTypeOf<Customer>().toExtend<Parameters<core.ExtensionRun['record']>[0]>()
})
