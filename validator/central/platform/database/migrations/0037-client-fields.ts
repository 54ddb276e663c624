/** Tags of templates, as a JSON array of texts, and the order in which billing history of all providers is read. */
export const clientFields = (): string[] => [
  `alter table templates add column tags_json text not null default '[]'`,
  'create index billing_periods_by_day on billing_periods (day_ms, pod_id)',
];
