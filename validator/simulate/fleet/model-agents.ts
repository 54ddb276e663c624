/**
 * Agents in memory, as the central API's port to agents. They run pods, lose them or stop answering as their owner sets.
 */
import type {
  CheckRequest,
  RewardQuery,
  RewardShares,
} from '#shared/api/central/validator-routes.ts';
import type { Clock } from '#shared/runtime/clock.ts';
import { ApiError } from '#shared/runtime/errors.ts';
import type { Agents } from '../../central/platform/ports.ts';
import { modelClient } from './model-client.ts';
import { createModelHost, type ModelHost } from './model-host.ts';
import { hotkey } from './model-keys.ts';

export type ModelAgents = Agents & {
  host(executorId: string): ModelHost;
  /** Number of pod listings so far, over all hosts. */
  listings(): number;
  /** Manually requested checks, oldest first. */
  wishes: CheckRequest[];
  /** Reward queries received, oldest first. */
  questions: RewardQuery[];
  /** Answer to reward queries; null: the query fails. */
  rewards: { shares: RewardShares | null };
  /** Records of the validator, by path without query. Others do not exist. */
  records: Map<string, unknown>;
};

/** Creates the agents. Every executor has an empty host that answers until `up` is set to false. */
export function createModelAgents(): ModelAgents & { useClock(clock: Clock): void } {
  const hosts = new Map<string, ModelHost>();
  let clock: Clock | null = null;
  let listings = 0;
  const wishes: CheckRequest[] = [];
  const questions: RewardQuery[] = [];
  const rewards: ModelAgents['rewards'] = { shares: null };
  const records: ModelAgents['records'] = new Map();

  function host(executorId: string): ModelHost {
    const known = hosts.get(executorId) ?? createModelHost(executorId);
    hosts.set(executorId, known);
    return known;
  }

  return {
    hotkey: hotkey(5),
    gateway: { host: '127.0.0.1', port: 8_090, hotkey: hotkey(6) },
    host,
    useClock(given) {
      clock = given;
    },
    listings: () => listings,
    wishes,
    questions,
    rewards,
    records,
    clientOf(executorId) {
      const client = modelClient(host(executorId), executorId, () => clock?.now() ?? 0);
      return {
        ...client,
        listPods() {
          listings += 1;
          return client.listPods();
        },
      };
    },
    async terminalOf() {
      throw new ApiError('upstream_unavailable', 'the modelled agent does not open terminals');
    },
    async checkNow(executorId, wish) {
      wishes.push(wish);
      const { report } = host(executorId);
      if (report === null)
        throw new ApiError('upstream_unavailable', 'the modelled validator does not respond');
      return report;
    },
    async signedDigest() {
      throw new ApiError('upstream_unavailable', 'the modelled validator has no signed digest');
    },
    async rewardShares(question) {
      questions.push(question);
      if (rewards.shares !== null) return rewards.shares;
      throw new ApiError('upstream_unavailable', 'the modelled validator does not respond');
    },
    async record(path, schema) {
      const record = records.get(path.split('?', 1)[0] ?? '');
      if (record !== undefined) return schema.parse(record);
      throw new ApiError('not_found', `the modelled validator has no record at ${path}`);
    },
  };
}
