/**
 * Meanings of the environment variables. `npm run docs` generates the tables of the READMEs from this file and from the
 * schemas.
 */
import type { AGENT_CONFIG } from '../../agent/config.ts';
import type { SSH_CONFIG } from '../../agent/ssh-gateway/config.ts';
import type { CENTRAL_CONFIG } from '../../validator/central/config.ts';
import type { VALIDATOR_CONFIG } from '../../validator/config.ts';
import type { PROVIDER_CONFIG } from '../../validator/provider-cli/config.ts';

/** The meaning in Markdown, and a description of the default if the schema has none. */
export type Meaning = string | { meaning: string; unset: string };

type MeaningsOf<Spec extends { schema: { shape: object } }> = Record<
  keyof Spec['schema']['shape'],
  Meaning
>;

const LOG_LEVEL = '`fatal`, `error`, `warn`, `info`, `debug`, `trace` or `silent`';
const WITH_PARENT = 'exits when the parent process exits (`npm start`)';
const LOGIN_FILE =
  'JSON file, mode 0600, with `username` and `password` for the registry of the agent’s image';
const POOL_SIZE =
  'PostgreSQL: maximum number of connections of the process, 4 to 500; the central API has one more for notifications';
const STATEMENT_SECONDS = 'PostgreSQL: time limit of a query in seconds, 1 to 3600';
const LOCK_SECONDS =
  'PostgreSQL: time limit of the wait for a lock in seconds, 1 to 600, less than that of a query';
const BACKUP_BUCKET_CREDENTIAL = {
  meaning: 'credential of the bucket for backups; nodes do not receive it',
  unset: 'credential chain of the AWS SDK',
};
const BACKUP_CREDENTIAL =
  'nodes pass this value to restic, in the variable without the prefix `CENTRAL_BACKUP_`';

export const PROVIDER_VARIABLES: MeaningsOf<typeof PROVIDER_CONFIG> = {
  PROVIDER_HOME: { meaning: 'folder with the provider’s key and session', unset: '`~/.podwright`' },
};

export const AGENT_VARIABLES: MeaningsOf<typeof AGENT_CONFIG> = {
  AGENT_EXECUTOR_ID: 'the id that the portal returned when the node was added',
  AGENT_TRUSTED_KEYS: {
    meaning:
      'keys that may call the agent: `ss58=role+role,…`; roles `validator-control`, `validator-read`, `provider-local`',
    unset: 'none',
  },
  AGENT_KEY_SET: 'JSON file of keys with roles and validity periods, signed by a trusted key',
  AGENT_ROOT_KEYS: {
    meaning:
      'root keys of the marketplace, after the number of their signatures that a key set needs: `2/ss58,ss58,ss58`',
    unset: 'the root keys in the first key set that a trusted key has also signed',
  },
  AGENT_HOME: 'folder with the agent’s state',
  AGENT_HOST: 'listen address',
  AGENT_PORT: 'listen port',
  AGENT_TLS:
    '`on`: TLS 1.3 on every address; `off`: plain HTTP, which a validator uses only with `VALIDATOR_AGENT_TLS=off`; `auto`: the same as `on`',
  AGENT_TLS_CERT: { meaning: 'PEM file of the certificate', unset: 'self-signed' },
  AGENT_TLS_KEY: { meaning: 'PEM file of the certificate’s key', unset: 'self-signed' },
  AGENT_TLS_OFF_EXPOSED: 'accepts `AGENT_TLS=off` on a listener that other hosts can reach',
  AGENT_METRICS_LISTEN: {
    meaning:
      'plain HTTP address for full `/metrics` and health, such as `127.0.0.1:9100`; the main listener then serves no metrics',
    unset: 'main listener',
  },
  AGENT_GPU_METRICS:
    'names of GPU metrics: `nvidia` (`nvidia_smi_…`), `dcgm` (`DCGM_FI_…`), `both` or `none`',
  AGENT_PORT_RANGE: 'host ports for pods; use a range outside the ephemeral ports',
  AGENT_POD_SUBNETS:
    'pool of the pods’ subnets (/28 each), inside 10/8, 172.16/12, 192.168/16 or 100.64/10; agents of one engine may share it',
  AGENT_EGRESS_ALLOW: {
    meaning:
      'private ranges that pods may reach, `10.20.0.0/24,…`; must be the same for all agents of an engine',
    unset: 'none',
  },
  AGENT_REQUIRE_FIREWALL: 'starts no pod without firewall rules',
  AGENT_GPU:
    'kind of the host’s GPUs: `auto` (NVIDIA’s if the driver is loaded, also if it is loaded later), `nvidia`, `simulated` or `none`',
  AGENT_SIMULATED_GPUS:
    'names and counts of simulated GPUs, separated by commas; split by MIG: `NVIDIA H100 80GB HBM3[1g.10gb*7]`',
  AGENT_GPU_MONITORS: {
    meaning:
      'monitoring programs of the provider that may run on leased cards, by name: `dcgm-exporter,nv-hostengine`; at most two processes a card',
    unset: 'none',
  },
  AGENT_GPU_SPLIT:
    '`any`: a pod may get a part of the host’s GPUs; `whole`: a pod gets all GPUs of the host',
  AGENT_MIN_GPU_COUNT: 'minimum number of GPUs per pod; 0 accepts pods without GPUs',
  AGENT_NVIDIA_SMI: 'path of nvidia-smi',
  AGENT_GPU_PROOF_IMAGE: 'image of the GPU proof, built on the host; never pulled',
  AGENT_BUSYBOX: 'path of a static busybox, the program of the agent’s built-in image',
  AGENT_SECRETS_FOLDER:
    'folder on a tmpfs for the secrets of pods; the engine must have this folder at the same path',
  AGENT_DOCKER_SOCKET: {
    meaning: 'socket of the engine',
    unset: '`DOCKER_HOST` (`unix://…` only), or `/var/run/docker.sock`',
  },
  AGENT_MEMORY_RESERVE_MIB: 'memory reserved for the host, in MiB',
  AGENT_HOST_SHARE:
    'percent of the memory and the cores of the host that this agent offers; with `npm start`, every agent offers an equal part',
  AGENT_ALLOW_LOCAL_REGISTRIES: 'accepts images from registries at private addresses',
  AGENT_IMAGE_GC:
    'disk use in percent at which the removal of unused images starts, and at which it stops',
  AGENT_POLICY: 'the provider’s policy, a JSON file',
  AGENT_KERNEL_LOG: 'device, pipe or file with the driver’s Xid messages',
  AGENT_UPDATE_URL: {
    meaning: 'source of signed digests: `https://…/api/updater/digest`',
    unset: 'no updates',
  },
  AGENT_UPDATE_IMAGE: 'repository of new versions',
  AGENT_UPDATE_CONTAINER: 'name of the agent’s own container, which an update replaces',
  AGENT_UPDATE_TREE: {
    meaning: 'folder of releases from which the agent runs',
    unset: 'set by the systemd unit',
  },
  AGENT_UPDATE_LOGIN_FILE: { meaning: LOGIN_FILE, unset: 'none (public image)' },
  AGENT_UPDATE_INTERVAL_S:
    'seconds between update checks; the agent adds a random delay of up to a tenth',
  AGENT_UPDATE_PROBATION_S: 'seconds for which a new version must work before the update is final',
  AGENT_LOG_LEVEL: LOG_LEVEL,
  AGENT_EXIT_WITH_PARENT: WITH_PARENT,
};

export const SSH_VARIABLES: MeaningsOf<typeof SSH_CONFIG> = {
  SSH_SNAPSHOT: 'the agent’s file with its pods: `ssh/gateway.json` in the agent’s home',
  SSH_HOST: 'listen address; each pod has its own port',
  SSH_DOCKER_SOCKET: 'socket of the engine',
  SSH_LOG_LEVEL: `${LOG_LEVEL}; \`info\` has one record per session, never content`,
  SSH_UPDATE_TREE: {
    meaning:
      'folder of releases from which the gateway runs; when this folder has a newer release and no session is open, the gateway exits',
    unset: 'set by the systemd unit',
  },
  SSH_EXIT_WITH_PARENT: WITH_PARENT,
};

export const CENTRAL_VARIABLES: MeaningsOf<typeof CENTRAL_CONFIG> = {
  CENTRAL_HOME: 'folder with the state of a central API that runs alone',
  CENTRAL_DATABASE: {
    meaning: '`postgres://user:password@host:port/database` or a SQLite file; also for `npm start`',
    unset: '`central.db` in the home',
  },
  CENTRAL_DATABASE_POOL_SIZE: `${POOL_SIZE}; also for \`npm start\``,
  CENTRAL_DATABASE_STATEMENT_SECONDS: STATEMENT_SECONDS,
  CENTRAL_DATABASE_LOCK_SECONDS: LOCK_SECONDS,
  CENTRAL_DATABASE_BACKUP_HOURS:
    'hours between two backups of a SQLite database; 0: none; also for `npm start`',
  CENTRAL_DATABASE_BACKUP_KEEP: 'number of newest backups of the database that are kept',
  CENTRAL_DATABASE_BACKUP_DIR: {
    meaning: 'folder of the backups of the database',
    unset: '`database-backups` beside the database',
  },
  CENTRAL_HOST: 'listen address',
  CENTRAL_PORT: 'listen port',
  CENTRAL_METRICS_LISTEN: {
    meaning:
      'plain HTTP address for `/metrics`, such as `127.0.0.1:9101`; for `npm start`, replaces the first port of `--metrics-port`',
    unset: 'no metrics',
  },
  CENTRAL_DRAIN_SECONDS:
    'seconds, 0 to 300, for which a stopping process still serves while `/readyz` answers 503, so that load balancers choose other processes; the time limit of the stop (`TimeoutStopSec=`, `terminationGracePeriodSeconds`) must be at least 30 s longer',
  CENTRAL_GATEWAY_URL: 'address of the validator’s gateway; `https:` unless it is on this host',
  CENTRAL_GATEWAY_PIN: {
    meaning: 'pin of the gateway’s certificate, which the validator logs',
    unset: 'system authorities',
  },
  CENTRAL_GATEWAY_HOTKEY: 'ss58 of the validator whose gateway `CENTRAL_GATEWAY_URL` names',
  CENTRAL_VALIDATORS: {
    meaning: 'ss58 of each validator whose verdicts count, `ss58,…`',
    unset: 'the gateway’s validator',
  },
  CENTRAL_SEED_FILE: {
    meaning:
      'seed of the central API’s hotkey, mode 0600, created if missing; its ss58 is in `GET /api/version`',
    unset: '`central.seed` in the home',
  },
  CENTRAL_SECRET_FILE: {
    meaning:
      '32 bytes that sign sessions and encrypt API keys, secrets and the environments of templates and pods, mode 0600, created if missing; back it up with the database, which cannot be read without it',
    unset: '`central.secret` in the home',
  },
  CENTRAL_SIGNUP_CREDIT_USD:
    'credit in USD for a new account, granted when its address is confirmed',
  CENTRAL_VERIFY_EMAIL: '`false`: addresses count as confirmed at once',
  CENTRAL_TRUSTED_PROXIES: {
    meaning: 'proxies whose `X-Forwarded-For` is trusted, `10.0.0.1,10.1.0.0/16,…`',
    unset: 'none',
  },
  CENTRAL_SMTP_URL: {
    meaning: '`smtp://user:password@host:587` or `smtps://…`',
    unset: 'local outbox',
  },
  CENTRAL_MAIL_FROM: 'sender of mails',
  CENTRAL_CONSOLE_URL:
    'web console that mails link to (`/verify-email` and `/reset-password` with `?token=`)',
  CENTRAL_NODE_PLACES:
    '`public`: nodes have public addresses; `private`: also addresses in the operator’s networks, and on this host if the API listens on loopback (default of `npm start`)',
  CENTRAL_WEBHOOK_TARGETS:
    '`public`: webhooks use https to public addresses; `loopback`: this host only, if the API listens on loopback (default of `npm start`)',
  CENTRAL_PUBLIC_ORIGIN: {
    meaning:
      'base address at which other hosts reach this server: for links to uploads, and for backups that nodes send',
    unset: 'for links, the address of the request; for backups, the address of the listener',
  },
  CENTRAL_API_KEYS_RETRIEVABLE:
    '`true`: sessions can read a full API key again; `false`: a full API key is shown once only',
  CENTRAL_S3_BUCKET: { meaning: 'bucket for uploads', unset: 'folder in the home' },
  CENTRAL_S3_REGION: 'region of the bucket',
  CENTRAL_S3_ENDPOINT: { meaning: 'S3 endpoint', unset: 'Amazon’s endpoint' },
  CENTRAL_S3_ACCESS_KEY_ID: {
    meaning: 'credential of the bucket',
    unset: 'credential chain of the AWS SDK',
  },
  CENTRAL_S3_SECRET_ACCESS_KEY: {
    meaning: 'credential of the bucket',
    unset: 'credential chain of the AWS SDK',
  },
  CENTRAL_S3_PUBLIC_URL: 'address at which everyone can read the bucket',
  CENTRAL_BACKUP_GIB:
    'quota of an account’s backups in GiB; restic receives a 507 if an upload would exceed it',
  CENTRAL_METER_TICK_SECONDS:
    'seconds between two passes that meter the running pods, at most 450; does not affect the charges',
  CENTRAL_LAUNCH_LIMIT_MINUTES:
    'minutes within which a new pod must run, at most 120; the limit is prolonged while the pod’s image arrives or is built',
  CENTRAL_SYNC_INTERVAL_SECONDS:
    'seconds between two syncs of a node whose pods need nothing, at most 60; with 30 or more, a node that misses one sync counts as silent',
  CENTRAL_SYNC_CONCURRENCY:
    'number of nodes that a process syncs at once, 2 to 1000; at most half of them are nodes that did not answer the last time, and an eighth is left for nodes with a new rental or request',
  CENTRAL_TOP_UP_WAIT_HOURS:
    'hours in which topped-up credit can be spent but not transferred; `0`: it can be transferred at once',
  CENTRAL_BACKUP_DRILL_HOURS:
    'hours between two scheduled drills of a pod’s backups; `0`: on request only',
  CENTRAL_VOLUME_GIB:
    'size limit of each new volume in GiB; saved data of volumes counts against `CENTRAL_BACKUP_GIB`',
  CENTRAL_BACKUP_REPOSITORY: {
    meaning:
      'place of the repositories of backups: a bucket (`s3:https://HOST/BUCKET/FOLDER`), which only the central API accesses, or a place that the nodes access: a path that every node has, `sftp:…` or `rest:…`',
    unset: 'this server',
  },
  CENTRAL_BACKUP_AWS_ACCESS_KEY_ID: BACKUP_BUCKET_CREDENTIAL,
  CENTRAL_BACKUP_AWS_SECRET_ACCESS_KEY: BACKUP_BUCKET_CREDENTIAL,
  CENTRAL_BACKUP_AWS_DEFAULT_REGION: {
    meaning: 'region of the bucket for backups',
    unset: '`CENTRAL_S3_REGION`',
  },
  CENTRAL_BACKUP_RESTIC_REST_USERNAME: BACKUP_CREDENTIAL,
  CENTRAL_BACKUP_RESTIC_REST_PASSWORD: BACKUP_CREDENTIAL,
  CENTRAL_CHAT_AUTHORIZE_URL: {
    meaning: 'authorization endpoint of the chat platform (OAuth 2)',
    unset: 'no chat platform',
  },
  CENTRAL_CHAT_TOKEN_URL: 'token endpoint of the chat platform',
  CENTRAL_CHAT_USER_URL: 'user endpoint of the chat platform, which returns `{id, username}`',
  CENTRAL_CHAT_CLIENT_ID: 'client id that the platform has assigned',
  CENTRAL_CHAT_CLIENT_SECRET: 'client secret that the platform has assigned',
  CENTRAL_CHAT_REDIRECT_URL: 'page of the console to which the platform returns users',
  CENTRAL_CHAT_SCOPE: 'requested scope',
  CENTRAL_CHAT_CHANNEL_URL: {
    meaning: 'prefix of the addresses of support channels; a slash and the channel’s name follow',
    unset: 'no address is shown',
  },
  CENTRAL_SUPPORT_EMAIL: {
    meaning: 'address that receives the messages of support channels',
    unset: 'messages stay in the database; `npm start` `support@localhost.localdomain`',
  },
  CENTRAL_MINER_URL: 'base address of the central miner server',
  CENTRAL_MINER_TOKEN: 'bearer token for the central miner server',
  CENTRAL_DOCS_URL: {
    meaning: 'address of `validator/README.md`; failed checks link to its section “Checks”',
    unset: 'no links',
  },
  CENTRAL_PAYMENTS:
    'payment processor for top-ups: `none`, `simulated` (default of `npm start`), `stripe`',
  CENTRAL_PAYOUTS:
    'payout processor: `none` (requested payouts wait), `simulated` (default of `npm start`); also read by `payout run`',
  CENTRAL_STRIPE_SECRET_KEY: 'secret key; required with `stripe`',
  CENTRAL_STRIPE_CALLBACK_SECRET:
    '`whsec_…` of the endpoint that calls `/payments/callback`; required with `stripe`',
  CENTRAL_ADDRESS_TABLE: {
    meaning:
      'table of addresses in MaxMind’s format (`.mmdb`); the central API compares the places that providers enter with this table, and reads a changed file again',
    unset: 'no comparison',
  },
  CENTRAL_COLLATERAL_FEED: {
    meaning:
      'list of deposits: a JSON file or `https://…`, read once a minute, `{"deposits": [{"executor_id": …}, {"miner_hotkey": …}]}`',
    unset: 'only deposits that the operator records',
  },
  CENTRAL_ALPHA_RATES: {
    meaning: 'rates of alpha tokens: a JSON file or `http(s)://…`',
    unset: 'no rates',
  },
  CENTRAL_RATE_LIMIT_ADDRESS: {
    meaning:
      'requests per minute and address (IPv6: per /64); several processes on one database divide all rates equally',
    unset: '`600`; `npm start` `60000`',
  },
  CENTRAL_RATE_LIMIT_CREDENTIAL: {
    meaning: 'requests per minute for each API key, and for all sessions of an account together',
    unset: '`600`; `npm start` `60000`',
  },
  CENTRAL_RATE_LIMIT_URGENT: {
    meaning: 'deletions of pods per minute and address, which count against no other rate',
    unset: '`600`; `npm start` `60000`',
  },
  CENTRAL_RATE_LIMIT_LOGIN: {
    meaning: 'sign-ins and sign-ups per minute and address',
    unset: '`10`; `npm start` `600`',
  },
  CENTRAL_RATE_LIMIT_SEARCH: {
    meaning: 'searches for an account per minute and address',
    unset: '`10`',
  },
  CENTRAL_CORS_ORIGINS: {
    meaning:
      'web origins whose pages may call the API: `https://console.example.org,…` or `*`; also for `npm start`',
    unset: 'none',
  },
  CENTRAL_LOG_LEVEL: LOG_LEVEL,
};

export const VALIDATOR_VARIABLES: MeaningsOf<typeof VALIDATOR_CONFIG> = {
  VALIDATOR_CENTRAL_URL: 'base address of the central API, including `/api`',
  VALIDATOR_CENTRAL_HOTKEY:
    'the only key whose commands the gateway relays: `hotkey` of the central API’s `GET /api/version`',
  VALIDATOR_HOME: 'folder with the validator’s state',
  VALIDATOR_DATABASE: {
    meaning:
      'evidence store (named `ledger.db` for compatibility): `postgres://user:password@host:port/database` or a SQLite file',
    unset: '`ledger.db` in the home',
  },
  VALIDATOR_DATABASE_POOL_SIZE: POOL_SIZE,
  VALIDATOR_DATABASE_STATEMENT_SECONDS: STATEMENT_SECONDS,
  VALIDATOR_DATABASE_LOCK_SECONDS: LOCK_SECONDS,
  VALIDATOR_DATABASE_BACKUP_HOURS:
    'hours between two backups of an evidence store in a SQLite file; 0: none',
  VALIDATOR_DATABASE_BACKUP_KEEP: 'number of newest backups of the store that are kept',
  VALIDATOR_DATABASE_BACKUP_DIR: {
    meaning: 'folder of the backups of the store',
    unset: '`database-backups` beside the database',
  },
  VALIDATOR_SEED_FILE: {
    meaning: 'seed of the hotkey: 64 hex digits, mode 0600, created if missing',
    unset: '`hotkey.seed` in the home',
  },
  VALIDATOR_KEY_FILE: {
    meaning: 'the hotkey as an encrypted key file (JSON, version 3), mode 0600',
    unset: 'the seed file',
  },
  VALIDATOR_KEY_PASSPHRASE_FILE: 'file with the passphrase of the encrypted key file, mode 0600',
  VALIDATOR_KEY_SET: {
    meaning:
      'signed key set of the agents; evidence is also trusted if a key of the set has signed it within the key’s validity period',
    unset: 'only this validator’s key',
  },
  VALIDATOR_HOST: 'listen address of the gateway',
  VALIDATOR_PORT: 'listen port of the gateway',
  VALIDATOR_TLS: '`auto`: TLS 1.3 unless the listener is on the loopback address; `on`, `off`',
  VALIDATOR_TLS_CERT: { meaning: 'PEM file of the certificate', unset: 'self-signed' },
  VALIDATOR_TLS_KEY: { meaning: 'PEM file of the certificate’s key', unset: 'self-signed' },
  VALIDATOR_TLS_OFF_EXPOSED: 'accepts `VALIDATOR_TLS=off` on a listener that other hosts can reach',
  VALIDATOR_METRICS_LISTEN: {
    meaning:
      'plain HTTP address for `/metrics` and health, such as `127.0.0.1:9102`; the gateway’s listener then serves no metrics',
    unset: 'gateway’s listener',
  },
  VALIDATOR_AGENT_TLS:
    '`on`: TLS 1.3 to every agent; `off`: plain HTTP to agents on loopback addresses, which need `AGENT_TLS=off`; `auto`: the same as `on`',
  VALIDATOR_CHECK_INTERVAL_S:
    'seconds between two checks of an executor; also the length of a cycle',
  VALIDATOR_LIST_INTERVAL_S: 'seconds between two reads of the executor list',
  VALIDATOR_CHECKS_AT_ONCE:
    'executors that one process checks at the same time; a higher number needs more memory',
  VALIDATOR_CHECK_POLICY: {
    meaning: 'limits and modes of the checks',
    unset: '`shared/check/default-check-policy.json`',
  },
  VALIDATOR_WEIGHT_POLICY: {
    meaning: 'policy of the weights',
    unset: '`validator/weights/default-policy.json`',
  },
  VALIDATOR_METAGRAPH: {
    meaning: 'registered hotkeys: a JSON file, read for each set of weights',
    unset: 'no weights',
  },
  VALIDATOR_WEIGHTS_INTERVAL_S: 'seconds between two sets of weights',
  VALIDATOR_EVIDENCE_DAYS: 'days for which epochs and the documents of passed checks are retained',
  VALIDATOR_VERDICT_DAYS: {
    meaning:
      'days for which verdicts are retained, with hash and signature, and the documents of checks that did not pass; at least `VALIDATOR_EVIDENCE_DAYS`. At most 50,000 per executor, whatever their age',
    unset: 'no limit of age',
  },
  VALIDATOR_COORDINATES: {
    meaning:
      '`lat,lon` of this validator in degrees; the central API then compares the places of nodes with the round trips that this validator measures',
    unset: 'no round trips',
  },
  VALIDATOR_ACCEPT_SIMULATED:
    'lets simulated GPUs pass, for local use only; their nodes earn no weight even then',
  VALIDATOR_AGENT_IMAGE: {
    meaning:
      'repository of the agent’s image, `host/name`; the validator signs the digest of its tag',
    unset: 'no releases',
  },
  VALIDATOR_PROBE_ACCOUNTS_FILE: {
    meaning:
      'JSON file, mode 0600, with a secret and the accounts with which [hidden rentals](#hidden-rentals) are made',
    unset: 'no hidden rentals',
  },
  VALIDATOR_PROBE_USD_PER_DAY: 'most USD that hidden rentals cost within 24 hours',
  VALIDATOR_PROBE_SOCKS: {
    meaning:
      'SOCKS5 proxy (`host:port`) of the logins of hidden rentals, such as `ssh -D` on another host, because a host can recognise the validator’s address',
    unset: 'direct connections',
  },
  VALIDATOR_AGENT_TAG: 'tag of the agent’s image',
  VALIDATOR_AGENT_LOGIN_FILE: { meaning: LOGIN_FILE, unset: 'none (public image)' },
  VALIDATOR_AGENT_ROLLOUT:
    'number of agents in a thousand that get a new digest at first; `release rollout` changes the number',
  VALIDATOR_AGENT_EXPIRY_S: 'seconds for which a signed manifest is valid',
  VALIDATOR_KEY_ID: { meaning: 'id of the hotkey in key sets', unset: 'the hotkey’s ss58' },
  VALIDATOR_LOG_LEVEL: LOG_LEVEL,
};
