/** Files that changed while a backup read them: JSON with their number and some of their paths; null if unknown. */
export const changedFiles = (): string[] => [
  'alter table backup_logs add column changed_files_json text',
];
