/** What providers announced of their nodes. */
import type { Flag, Stamped } from './columns.ts';

export type NoticesTable = Stamped & {
  id: string;
  executor_id: string;
  start_at: number;
  /** As the provider wrote it, with its offset. */
  start_text: string;
  /** Of a maintenance; null: the node goes for good. */
  minutes: number | null;
  permanent: Flag;
  reason: string | null;
  state: 'open' | 'started' | 'done' | 'cancelled';
};

export type NoticeTables = { notices: NoticesTable };
