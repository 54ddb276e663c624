/** Files that changed while a backup read them, as JSON with their number and some of their paths; null: unknown. */
export const changedFiles = (): string[] => [
  'alter table backup_logs add column changed_files_json text',
];
