import { expectTypeOf, test } from 'vitest'
import type { z } from 'zod'
import type { RunLimits, StallOptions, StallRules } from '#contracts/limits.js'
import type { ExtensionRun } from '#core/extension/extension.js'
import type { ListOptions, PruneOptions } from '#core/log/list-options.js'
import type { ToolResultFields } from '#core/tools/tool-result.js'
import type { ToolAnnotations, ToolReach } from '#core/tools/tool-spec.js'
import type { MapOptions } from '#harness/map-rows.js'
import type { CloseOptions, ForkOptions, ReplayOptions } from '#harness/options.js'
import type { CallToolOptions } from '#harness/try-tool.js'
import type { Rates } from '#run/money/token-cost.js'
import type { ProvenanceRule } from '#run/provenance/options.js'
import type { ForkPoint } from '#run/replay/fork.js'
import type { FileLogOptions } from '#store/file-log.js'
import type { MemoryLogOptions } from '#store/memory-log.js'
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
  ReplayOptions,
  ForkOptions,
  ForkPoint,
  core.Limits,
  StallOptions,
  core.ModelSettings,
  core.ModelCapabilities,
  core.Prices,
  Rates,
  core.ToolOptions<z.ZodType>,
  core.ToolSpec,
  ToolReach,
  ToolAnnotations,
  ToolResultFields,
  core.SpawnOptions,
  CallToolOptions,
  core.Extension,
  core.ProvenanceOptions,
  ProvenanceRule,
  core.Decision,
  core.Answer,
  ListOptions,
  PruneOptions,
  core.FollowOptions,
  FileLogOptions,
  MemoryLogOptions,
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
  CloseOptions,
  MapOptions,
  RunLimits,
  StallRules,
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
  expectTypeOf<Customer>().toExtend<NonNullable<ForkOptions['metadata']>>()
  expectTypeOf<Customer>().toExtend<NonNullable<core.SpawnOptions['metadata']>>()
  expectTypeOf<Customer>().toExtend<NonNullable<CallToolOptions['metadata']>>()
  expectTypeOf<Customer>().toExtend<NonNullable<ToolResultFields['metadata']>>()
  expectTypeOf<Customer>().toExtend<NonNullable<dbos.StartOptions['metadata']>>()
  expectTypeOf<Customer>().toExtend<Parameters<core.ToolContext['progress']>[0]>()
  expectTypeOf<Customer>().toExtend<Parameters<core.ToolContext['ask']>[0]>()
  expectTypeOf<Customer>().toExtend<Parameters<ExtensionRun['record']>[0]>()
})
