// Says and shows what is said.
const socket = new WebSocket(`wss://${location.host}/socket/`);
const state = document.querySelector('#state');
socket.onopen = () => { state.textContent = 'connected'; };
socket.onclose = () => { state.textContent = 'closed'; };
socket.onmessage = (event) => {
  const item = document.createElement('li');
  item.textContent = event.data;
  document.querySelector('#said').append(item);
};
document.querySelector('#say').addEventListener('submit', (event) => {
  event.preventDefault();
  socket.send(document.querySelector('#words').value);
});
