/** Tags of templates as a JSON array of texts, and an index for the billing history of all providers. */
export const clientFields = (): string[] => [
  `alter table templates add column tags_json text not null default '[]'`,
  'create index billing_periods_by_day on billing_periods (day_ms, pod_id)',
];
