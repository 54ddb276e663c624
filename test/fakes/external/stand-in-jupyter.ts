/** Shell programs that replace Python and Jupyter in a pod of the built-in image, for fault tests. */

/**
 * Answers a status request that carries the token. While the file `open` exists in its folder, it answers every status
 * request.
 */
const ANSWER = `#!/bin/sh
status='403 Forbidden'
[ -e /tmp/open ] && status='200 OK'
while read -r line; do
  line=\${line%?}
  [ -z "$line" ] && break
  [ "$line" = "authorization: token $token" ] && status='200 OK'
done
printf 'HTTP/1.0 %s\\r\\nContent-Length: 2\\r\\n\\r\\n{}' "$status"
`;

const JUPYTER = `#!/bin/sh
[ "$1" = --version ] && echo 4.0.0 && exit 0
[ -e /tmp/broken ] && echo 'cannot begin: no kernel' >&2 && exit 3
for word; do
  case $word in --config=*) config=\${word#*=} ;; --port=*) port=\${word#*=} ;; esac
done
token=$(sed 's/.*"IdentityProvider":{"token":"\\([0-9a-f]*\\)".*/\\1/' "$config")
export token
exec nc -ll -p "$port" -e /opt/answer
`;

/**
 * A Python whose venv has a pip that runs /tmp/pip: a script that fetches nothing, waits for ever, or installs the
 * stand-in Jupyter.
 */
const PYTHON = `#!/bin/sh
[ "$1" = -c ] || [ "$3" = --version ] && exit 0
[ "$1 $2" = '-m pip' ] && exec sh /tmp/pip
mkdir -p "$4/bin" && ln -s /opt/python3 "$4/bin/python"
`;

/** Shell lines that install these programs below /opt, outside of PATH. */
export const STAND_INS = [
  ['/opt/answer', ANSWER],
  ['/opt/jupyter', JUPYTER],
  ['/opt/python3', PYTHON],
]
  .map(([path, text]) => `cat >${path} <<'END'\n${text}END\nchmod +x ${path}\n`)
  .join('');

/** Makes Jupyter available, as in an image that contains it. */
export const WITH_JUPYTER = `mkdir -p /opt /usr/local/bin
${STAND_INS}ln -sf /opt/jupyter /usr/local/bin/jupyter-lab
`;

/** Makes only Python available; pip runs the shell script `pip`. */
export function withPython(pip: string): string {
  return `mkdir -p /opt /usr/local/bin
${STAND_INS}ln -sf /opt/python3 /usr/local/bin/python3
[ -e /tmp/pip ] || cat >/tmp/pip <<'END'
${pip}
END
`;
}

/** Effect of a working pip. */
export const PIP_INSTALLS = 'ln -s /opt/jupyter /opt/podwright/notebook/bin/jupyter-lab';
